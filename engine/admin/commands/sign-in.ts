import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'
import { CLIENT_SECRET_BYTES_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import { readPrivateFile } from '../../process/private-file.ts'
import { type SealedSecret, SecretsKey, secretsKeyFile, secretsKeySetting } from '../../process/secrets-key.ts'
import { addSettingOptions, readSettings } from '../../process/settings.ts'
import { sudoUser } from '../../process/token-setting.ts'
import { clientSecretContext, type GroupRole, type IdentityProvider } from '../../store/identity-providers.ts'
import { ROLES, type Role } from '../../store/members.ts'
import { SIGN_IN_DEFAULTS, signInSettings } from '../sign-in.ts'
import { changeOptions, dataDirectoryOf, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

const keySettings = z.object({ secretsKeyFile: secretsKeySetting })

interface Given {
  readonly org?: string
  readonly name?: string
  readonly issuer?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly scopes?: string
  readonly nameClaim?: string
  readonly groupsClaim?: string
  readonly group?: readonly GroupRole[]
  readonly defaultRole?: Role | 'none'
}

/** posture-admin sign-in show | set | remove */
export function addSignInCommands(signIn: Command): void {
  const one = ofOrganization(sharedOptions(signIn.command('show').description('Show the identity provider')))
  one.action(({ org }: Given) =>
    withStore(one, ({ store, administration }) => {
      const organization = administration.organization(org)
      const provider = store.identityProviders.get(organization.id)
      if (provider === undefined) throw new Fault('NOT_FOUND', `${organization.name} has no identity provider`)
      print(one, provider)
    }),
  )

  addSet(signIn)

  const remove = ofOrganization(
    changeOptions(
      signIn
        .command('remove')
        .description('Remove the identity provider and end its sessions; users without a password cannot sign in then'),
    ),
  )
  remove.action(({ org }: Given) =>
    withStore(remove, ({ administration }) => {
      print(remove, administration.signIn.remove(administration.organization(org)))
    }),
  )
}

function addSet(signIn: Command): void {
  const set = addSettingOptions(
    ofOrganization(
      changeOptions(signIn.command('set').description('Set the identity provider, or change its settings')),
    ),
    keySettings,
  )
    .option('--name <name>', 'Show this name on the button for sign-in')
    .option('--issuer <url>', 'Sign in with the OpenID provider that has this issuer URL')
    .option('--client-id <id>', 'Use this client ID')
    .option('--client-secret-file <file>', 'Read the client secret from this file; - reads standard input')
    .option('--scopes <scopes>', `Request these scopes, separated by spaces; by default ${SIGN_IN_DEFAULTS.scopes}`)
    .option('--name-claim <claim>', `Name new members by this claim; by default ${SIGN_IN_DEFAULTS.nameClaim}`)
    .option('--groups-claim <claim>', `Read groups from this claim; by default ${SIGN_IN_DEFAULTS.groupsClaim}`)
    .addOption(
      new Option(
        '--group <group=role>',
        'Give members of this group a role, in place of all earlier groups; repeat the option for more',
      ).argParser(groupOption),
    )
    .addOption(
      new Option('--default-role <role>', 'Give this role to users in none of the groups; none refuses them').choices([
        'none',
        ...ROLES,
      ]),
    )
  set.action((given: Given) =>
    withStore(set, async ({ store, administration }) => {
      const organization = administration.organization(given.org)
      const settings = settingsOf(store.identityProviders.get(organization.id), given)
      const secret = await clientSecretOf(given.clientSecretFile)
      const { id: organizationId } = organization
      const context = clientSecretContext({ organizationId, issuer: settings.issuer })
      const sealed = secret === undefined ? undefined : seal(set, secret, context)
      print(set, administration.signIn.set(organization, settings, sealed))
    }),
  )
}

function groupOption(text: string, before: readonly GroupRole[] = []): readonly GroupRole[] {
  const at = text.lastIndexOf('=')
  const role = ROLES.find((each) => each === text.slice(at + 1))
  if (at < 1 || role === undefined)
    throw new InvalidArgumentError(`expected GROUP=ROLE with a role of ${ROLES.join(', ')}`)
  return [...before, { group: text.slice(0, at), role }]
}

/** The given settings, else those before, else the defaults. @throws Fault USAGE. */
function settingsOf(before: IdentityProvider | undefined, given: Given) {
  const parsed = signInSettings.safeParse({
    name: given.name ?? before?.name ?? '',
    issuer: given.issuer ?? before?.issuer ?? '',
    clientId: given.clientId ?? before?.clientId ?? '',
    scopes: given.scopes ?? before?.scopes.join(' ') ?? SIGN_IN_DEFAULTS.scopes,
    nameClaim: given.nameClaim ?? before?.nameClaim ?? SIGN_IN_DEFAULTS.nameClaim,
    groupsClaim: given.groupsClaim ?? before?.groupsClaim ?? SIGN_IN_DEFAULTS.groupsClaim,
    groups: given.group ?? before?.groups ?? [],
    defaultRole: given.defaultRole ?? before?.defaultRole ?? SIGN_IN_DEFAULTS.defaultRole,
  })
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map(({ path, message }) => `${FLAGS[String(path[0])] ?? 'settings'}: ${message}`)
  throw new Fault('USAGE', faults.join('; '))
}

const FLAGS: Readonly<Record<string, string>> = {
  name: '--name',
  issuer: '--issuer',
  clientId: '--client-id',
  scopes: '--scopes',
  nameClaim: '--name-claim',
  groupsClaim: '--groups-claim',
  groups: '--group',
  defaultRole: '--default-role',
}

/** Never from the command line, which other users can read. */
async function clientSecretOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  const where = `--client-secret-file ${file}`
  const secret =
    file === '-'
      ? await standardInput(where)
      : readPrivateFile(where, file, { code: 'USAGE', owners: sudoUser(process.env) })
  if (secret !== '' && Buffer.byteLength(secret) <= CLIENT_SECRET_BYTES_MAX) return secret
  throw new Fault('USAGE', `${where}: expected a secret of 1 to ${CLIENT_SECRET_BYTES_MAX} bytes`)
}

async function standardInput(where: string): Promise<string> {
  let text = ''
  for await (const part of process.stdin) {
    text += String(part)
    if (text.length > CLIENT_SECRET_BYTES_MAX) throw new Fault('USAGE', `${where}: expected a secret, found more bytes`)
  }
  return text.trim()
}

function seal(command: Command, secret: string, context: string): SealedSecret {
  const { secretsKeyFile: file } = readSettings(keySettings, { command, environment: process.env })
  return new SecretsKey(secretsKeyFile(file, dataDirectoryOf(command))).seal(secret, context)
}

function print(command: Command, provider: IdentityProvider): void {
  show(command, {
    vertical: true,
    columns: [
      ['Name', 'name'],
      ['Issuer', 'issuer'],
      ['Client ID', 'client_id'],
      ['Scopes', 'scopes'],
      ['Name claim', 'name_claim'],
      ['Groups claim', 'groups_claim'],
      ['Groups', 'groups'],
      ['Default role', 'default_role'],
      ['Changed', 'changed_at'],
    ],
    rows: [
      {
        name: provider.name,
        issuer: provider.issuer,
        client_id: provider.clientId,
        scopes: provider.scopes.join(' '),
        name_claim: provider.nameClaim,
        groups_claim: provider.groupsClaim,
        groups: provider.groups.map(({ group, role }) => `${group}=${role}`).join(', '),
        default_role: provider.defaultRole,
        changed_at: timeText(provider.changedAtMs),
      },
    ],
  })
}
