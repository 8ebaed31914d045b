import { serviceProgram } from '../../api/program.ts'
import { collectorProgram } from '../../collector/program.ts'
import { adminProgram } from '../../engine/cli/program.ts'
import { type CommandModel, commandModel } from '../command-model.ts'

/** An installed command, with additional text for its manual page. */
export interface CommandLine {
  readonly model: CommandModel
  /** Manual section: 1 for user commands, 8 for daemons. */
  readonly section: 1 | 8
  /** The subcommand that runs by default. */
  readonly defaultCommand?: string
  readonly files: readonly { readonly path: string; readonly about: string }[]
  readonly seeAlso: readonly string[]
}

/** By command name. */
export const COMMAND_LINES: Readonly<Record<string, CommandLine>> = {
  'posture-collector': {
    model: commandModel(collectorProgram()),
    section: 8,
    defaultCommand: 'run',
    files: [
      { path: '/etc/posture-collector/collector.env', about: 'Settings of the systemd unit' },
      { path: '/var/lib/posture-collector', about: 'Outbox: events that wait to be forwarded' },
    ],
    seeAlso: ['posture-service(8)', 'pcap-filter(7)'],
  },
  'posture-service': {
    model: commandModel(serviceProgram()),
    section: 8,
    files: [
      { path: '/etc/posture-service/service.env', about: 'Settings of the systemd unit' },
      { path: '/var/lib/posture-service', about: 'Store and self-signed certificate' },
    ],
    seeAlso: ['posture-admin(1)', 'posture-collector(8)'],
  },
  'posture-admin': {
    model: commandModel(await adminProgram()),
    section: 1,
    files: [{ path: '/var/lib/posture-service', about: 'Data directory of the service' }],
    seeAlso: ['posture-service(8)', 'posture-collector(8)'],
  },
}
