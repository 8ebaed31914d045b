import type { Command } from 'commander'
import type { MonitoringToken } from '../../store/monitoring-tokens.ts'
import { sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin token generate | list | revoke */
export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('monitoring tokens, by which collectors and log senders are known')

  const generate = sharedOptions(
    token.command('generate <label>').description('make a monitoring token; it is shown once'),
  ).requiredOption('--org <name>', 'name or id of the organization')
  generate.action((label: string, options: { org: string }) =>
    withStore(generate, ({ administration }) => {
      const { record, raw } = administration.createMonitoringToken(administration.organization(options.org), label)
      print(generate, [record], raw)
    }),
  )

  const list = sharedOptions(token.command('list').description('show the tokens of an organization')).requiredOption(
    '--org <name>',
    'name or id of the organization',
  )
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.monitoringTokens.ofOrganization(administration.organization(options.org).id))
    }),
  )

  const revoke = sharedOptions(
    token.command('revoke <token>').description('end a token for ever, by its id or its 8 visible digits'),
  ).requiredOption('--org <name>', 'name or id of the organization')
  revoke.action((idOrVisible: string, options: { org: string }) =>
    withStore(revoke, ({ administration }) => {
      print(revoke, [administration.revokeMonitoringToken(administration.organization(options.org), idOrVisible)])
    }),
  )
}

/** With the raw token only where it was made just now. */
function print(command: Command, tokens: readonly MonitoringToken[], raw?: string): void {
  show(command, {
    columns: [
      ...(raw === undefined ? [] : ([['Token (shown once)', 'token']] as const)),
      ['Label', 'label'],
      ['Begins', 'visible'],
      ['Created', 'created_at'],
      ['Revoked', 'revoked_at'],
      ['Id', 'id'],
    ],
    rows: tokens.map((token) => ({
      ...(raw === undefined ? {} : { token: raw }),
      id: token.id,
      label: token.label,
      visible: token.visible,
      created_at: timeText(token.createdAtMs),
      revoked_at: timeText(token.revokedAtMs),
    })),
  })
}
