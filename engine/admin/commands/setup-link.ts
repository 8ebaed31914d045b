import { hostname } from 'node:os'
import type { Command } from 'commander'
import { z } from 'zod'
import { isoSeconds } from '../../process/clock.ts'
import { addSettingOptions, originOrNone, readSettings, setting } from '../../process/settings.ts'
import { printsTable, secretText } from '../../process/table.ts'
import { linkUrl, type NewAccountLink } from '../account-links.ts'
import { changeOptions, ofOrganization, printText, sharedOptions, show, withStore } from './context.ts'

/** The port of the console unless --console-port changes it. */
const CONSOLE_PORT = 8444

const linkSettings = z.object({
  consoleOrigin: setting(originOrNone().default(''), {
    flag: '--console-origin <origin>',
    env: 'CONSOLE_ORIGIN',
    about: 'Use this origin of the console in the link',
    defaultAbout: "https, this machine's name, port 8444",
  }),
})

/** posture-admin setup-link */
export function addSetupLinkCommand(command: Command): void {
  const link = addSettingOptions(sharedOptions(command), linkSettings).option(
    '--org <name>',
    'Make the person an owner of this organization; without it, the only organization or a new one',
  )
  link.action((options: { org?: string }) =>
    withStore(
      link,
      ({ store, administration }) => {
        const all = store.organizations.all()
        const organization =
          options.org !== undefined ? administration.organization(options.org) : all.length === 1 ? all[0] : undefined
        printLink(link, 'Setup link', organization?.name, administration.accountLinks.setup(organization))
      },
      { create: true },
    ),
  )
}

/** posture-admin member invite, in the group of member's commands. */
export function addInviteCommand(member: Command): void {
  const invite = addSettingOptions(
    ofOrganization(
      changeOptions(
        member
          .command('invite')
          .description('Print a link with which a member can sign in to the console')
          .argument('<name>', 'Name of the member'),
      ),
    ),
    linkSettings,
  )
  invite.action((name: string, options: { org: string }) =>
    withStore(invite, ({ administration }) => {
      const organization = administration.organization(options.org)
      printLink(invite, 'Invitation', name, administration.accountLinks.invite(organization, name))
    }),
  )
}

/** posture-admin password-link */
export function addPasswordLinkCommand(command: Command): void {
  const link = addSettingOptions(
    sharedOptions(command.argument('<name>', 'Name of the user for sign-in')),
    linkSettings,
  )
  link.action((name: string) =>
    withStore(link, ({ administration }) => {
      printLink(link, 'Password link', name, administration.accountLinks.password(name))
    }),
  )
}

function printLink(
  command: Command,
  title: string,
  about: string | undefined,
  { secret, expiresAtMs }: NewAccountLink,
): void {
  const { consoleOrigin } = readSettings(linkSettings, { command, environment: process.env })
  const origin = consoleOrigin === '' ? `https://${hostname()}:${CONSOLE_PORT}` : consoleOrigin
  const url = linkUrl(origin, secret)
  show(command, {
    columns: [
      ['For', 'for'],
      ['Expires', 'expires_at'],
    ],
    rows: [{ for: about ?? null, expires_at: isoSeconds(expiresAtMs), url }],
  })
  if (printsTable(command.optsWithGlobals<{ json?: boolean }>())) printText(command, `\n${secretText(title, url)}`)
}
