import { z } from 'zod'
import { SIGN_IN_DEFAULTS, signInSettings } from '../admin/sign-in.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { oneOf, textOf } from '../kernel/process/settings.ts'
import { CLIENT_SECRET_BYTES_MAX } from '../limits.ts'
import { clientSecretContext, type GroupRole, type IdentityProvider, ROLES } from '../store/members.ts'
import { type Commands, change, option, query, table } from './command.ts'
import { SECRETS_KEY, secretFrom, secretsKeyOf } from './service-options.ts'

const provider = table<IdentityProvider>(
  [
    ['Name', 'name'],
    ['Issuer', 'issuer'],
    ['Client ID', 'client_id'],
    ['Scopes', 'scopes', { of: ({ scopes }) => scopes.join(' ') }],
    ['Name claim', 'name_claim'],
    ['Groups claim', 'groups_claim'],
    ['Groups', 'groups', { of: ({ groups }) => groups.map(({ group, role }) => `${group}=${role}`).join(', ') }],
    ['Default role', 'default_role'],
    ['Changed', 'changed_at'],
  ],
  { vertical: true },
)

/** `GROUP=ROLE` */
function groupRole(text: string): GroupRole | undefined {
  const at = text.lastIndexOf('=')
  const role = ROLES.find((each) => each === text.slice(at + 1))
  return at < 1 || role === undefined ? undefined : { group: text.slice(0, at), role }
}

const SETTINGS = {
  name: option('--name <name>', 'Show this name on the button for sign-in'),
  issuer: option('--issuer <url>', 'Sign in with the OpenID provider that has this issuer URL'),
  clientId: option('--client-id <id>', 'Use this client ID'),
  clientSecretFile: option(
    '--client-secret-file <file>',
    'Read the client secret from this file; - reads standard input',
  ),
  scopes: option(
    '--scopes <scopes>',
    `Request these scopes, separated by spaces; by default ${SIGN_IN_DEFAULTS.scopes}`,
  ),
  nameClaim: option('--name-claim <claim>', `Name new members by this claim; by default ${SIGN_IN_DEFAULTS.nameClaim}`),
  groupsClaim: option(
    '--groups-claim <claim>',
    `Read groups from this claim; by default ${SIGN_IN_DEFAULTS.groupsClaim}`,
  ),
  groups: option(
    '--group <group=role>',
    'Give members of this group a role, in place of all earlier groups; repeat the option for more',
    z.array(textOf(groupRole, `expected GROUP=ROLE with a role of ${ROLES.join(', ')}`)).optional(),
  ),
  defaultRole: option(
    '--default-role <role>',
    'Give this role to users in none of the groups; none refuses them',
    oneOf(['none', ...ROLES]).optional(),
  ),
}

type Given = { readonly [Name in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[Name]> }

/** The given settings, else those before, else the defaults. @throws Fault USAGE. */
function settingsOf(before: IdentityProvider | undefined, given: Given) {
  const parsed = signInSettings.safeParse({
    name: given.name ?? before?.name ?? '',
    issuer: given.issuer ?? before?.issuer ?? '',
    clientId: given.clientId ?? before?.clientId ?? '',
    scopes: given.scopes ?? before?.scopes.join(' ') ?? SIGN_IN_DEFAULTS.scopes,
    nameClaim: given.nameClaim ?? before?.nameClaim ?? SIGN_IN_DEFAULTS.nameClaim,
    groupsClaim: given.groupsClaim ?? before?.groupsClaim ?? SIGN_IN_DEFAULTS.groupsClaim,
    groups: given.groups ?? before?.groups ?? [],
    defaultRole: given.defaultRole ?? before?.defaultRole ?? SIGN_IN_DEFAULTS.defaultRole,
  })
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map(({ path, message }) => `${flagOf(String(path[0] ?? ''))}: ${message}`)
  throw new Fault('USAGE', faults.join('; '))
}

/** `clientId`: `--client-id` */
function flagOf(name: string): string {
  if (name === '') return 'settings'
  return name === 'groups' ? '--group' : `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

export const commands: Commands = {
  show: query('Show the identity provider', {
    run({ store, organization }) {
      const found = store.identityProviders.get(organization.id)
      if (found === undefined) throw new Fault('NOT_FOUND', `${organization.name} has no identity provider`)
      return provider([found])
    },
  }),
  set: change('Set the identity provider, or change its settings', {
    params: { secretsKeyFile: SECRETS_KEY, ...SETTINGS },
    read: async ({ clientSecretFile: file }) =>
      file === undefined ? undefined : await secretFrom('--client-secret-file', file, CLIENT_SECRET_BYTES_MAX),
    run({ store, administration, organization }, { secretsKeyFile, ...given }, secret) {
      const { id: organizationId } = organization
      const settings = settingsOf(store.identityProviders.get(organizationId), given)
      const context = clientSecretContext({ organizationId, issuer: settings.issuer })
      const sealed = secret === undefined ? undefined : secretsKeyOf(store, secretsKeyFile).seal(secret, context)
      return provider([administration.signIn.set(organization, settings, sealed)])
    },
  }),
  remove: change('Remove the identity provider and end its sessions; users without a password cannot sign in then', {
    run: ({ administration, organization }) => provider([administration.signIn.remove(organization)]),
  }),
}
