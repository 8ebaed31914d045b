import { Accounts } from '../engine/admin/accounts.ts'
import { Administration } from '../engine/admin/administration.ts'
import type { Clock } from '../engine/kernel/process/clock.ts'
import { Fault, plainFault } from '../engine/kernel/process/error-codes.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { LabeledValue } from '../engine/kernel/process/metrics.ts'
import { confirmChanges } from '../engine/store/confirm-changes.ts'
import { SERVICE_WIDE } from '../engine/store/own-platforms.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { ChangeOutcome, ChangeRequest } from './changes.ts'
import { ACCOUNT_COMMANDS, COMMANDS, type CommandContext, runAccountCommand } from './commands.ts'

const COMMAND_NAMES = [...Object.keys(COMMANDS), ...Object.keys(ACCOUNT_COMMANDS)]
const RESULTS = ['changed', 'refused', 'failed'] as const

/** Makes the changes of the console's thread, in the writing thread. */
export class ConsoleWriter {
  readonly #store: Store
  readonly #registry: RegistryInForce
  readonly #clock: Clock
  readonly #log: Logger
  readonly #counts = new Map<string, number>()

  constructor(store: Store, registry: RegistryInForce, clock: Clock, log: Logger) {
    this.#store = store
    this.#registry = registry
    this.#clock = clock
    this.#log = log
  }

  /** Returns when the change is durable: on the brokers too, if the store is replicated. */
  async make(request: ChangeRequest): Promise<ChangeOutcome> {
    const outcome = await this.#outcome(request)
    const result = outcome.kind === 'changed' ? 'changed' : outcome.fault === undefined ? 'failed' : 'refused'
    const key = `${request.command} ${result}`
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    return outcome
  }

  /** The number of changes by command and result. */
  counts(): LabeledValue[] {
    return COMMAND_NAMES.flatMap((command) =>
      RESULTS.map((result) => {
        return { labels: { command, result }, value: this.#counts.get(`${command} ${result}`) ?? 0 }
      }),
    )
  }

  async #outcome(request: ChangeRequest): Promise<ChangeOutcome> {
    const { id, command } = request
    try {
      const result = this.#run(request)
      await confirmChanges(this.#store)
      return { kind: 'changed', id, result }
    } catch (error) {
      if (error instanceof Fault) return { kind: 'refused', id, fault: plainFault(error) }
      logFailure(this.#log, error, 'a change of the console failed', { fields: { command } })
      return { kind: 'refused', id, fault: undefined }
    }
  }

  #run(request: ChangeRequest): unknown {
    if (request.kind === 'account') {
      return runAccountCommand(new Accounts(this.#store, this.#clock), request.command, request.parameters)
    }
    const { command, organizationId, memberName, parameters } = request
    const administration = new Administration(this.#store, this.#clock, { kind: 'member', name: memberName })
    const organization = this.#store.organizations.get(organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', 'the organization no longer exists')
    const run = COMMANDS[command] as (context: CommandContext, parameters: unknown) => unknown
    const registry = this.#registry
    const context: CommandContext = {
      administration,
      organization,
      catalog: registry.catalogOf(organizationId),
      sharedCatalog: registry.catalogOf(SERVICE_WIDE),
    }
    return run(context, parameters)
  }
}
