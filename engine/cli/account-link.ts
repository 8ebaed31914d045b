import { hostname } from 'node:os'
import { linkUrl, type NewAccountLink } from '../admin/account-links.ts'
import { originOrNone, setting } from '../kernel/process/settings.ts'
import { argument, type Commands, change, option, query, table } from './command.ts'
import type { Result } from './context.ts'

/** The port of the console unless --console-port changes it. */
const CONSOLE_PORT = 8444
const CONSOLE_ORIGIN = setting(originOrNone().default(''), {
  flag: '--console-origin <origin>',
  env: 'CONSOLE_ORIGIN',
  about: 'Use this origin of the console in the link',
  defaultAbout: "https, this machine's name, port 8444",
})

const links = table<NewAccountLink & { name: string | undefined; url: string }>([
  ['For', 'for', { of: ({ name = null }) => name }],
  ['Expires', 'expires_at'],
  [null, 'url'],
])

function shown(title: string, name: string | undefined, link: NewAccountLink, consoleOrigin: string): Result {
  const url = linkUrl(consoleOrigin === '' ? `https://${hostname()}:${CONSOLE_PORT}` : consoleOrigin, link.secret)
  return { ...links([{ ...link, name, url }]), secret: { name: title, raw: url } }
}

/** posture-admin setup-link */
export const setupLink: Commands = {
  '': query('', {
    organization: false,
    creates: true,
    params: {
      consoleOrigin: CONSOLE_ORIGIN,
      org: option(
        '--org <name>',
        'Make the person an owner of this organization; without it, the only organization or a new one',
      ),
    },
    run({ store, administration }, { org, consoleOrigin }) {
      const all = store.organizations.all()
      const organization = org !== undefined ? administration.organization(org) : all.length === 1 ? all[0] : undefined
      return shown('Setup link', organization?.name, administration.accountLinks.setup(organization), consoleOrigin)
    },
  }),
}

/** posture-admin password-link */
export const passwordLink: Commands = {
  '': query('', {
    organization: false,
    params: { name: argument('<name>', 'Name of the user for sign-in'), consoleOrigin: CONSOLE_ORIGIN },
    run: ({ administration }, { name, consoleOrigin }) =>
      shown('Password link', name, administration.accountLinks.password(name), consoleOrigin),
  }),
}

/** posture-admin member invite */
export const invite = change('Print a link with which a member can sign in to the console', {
  params: { name: argument('<name>', 'Name of the member'), consoleOrigin: CONSOLE_ORIGIN },
  run: ({ administration, organization }, { name, consoleOrigin }) =>
    shown('Invitation', name, administration.accountLinks.invite(organization, name), consoleOrigin),
})
