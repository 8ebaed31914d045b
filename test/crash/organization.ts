import { OutboxReader } from '../../collector/outbox/outbox-reader.ts'
import { environmentExists } from '../../engine/kernel/lmdb/file-access.ts'
import { Store } from '../../engine/store/store.ts'
import { type Running, start } from '../support/programs.ts'
import { findingsOf } from '../support/store.ts'
import { organizationWithToken } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'
import { byClient, clientsInScans, differencesOf, type Matches, matchesInScans } from './oracle.ts'

const NAME = 'Acme'

/** The data directories of the two programs. */
export interface Directories {
  /** The service's data directory. */
  readonly data: string
  readonly outbox: string
}

/**
 * The organization of a test: its collector's token, and its records in the stores of both
 * programs.
 */
export class Organization {
  readonly token: string
  readonly #id: string
  readonly #directories: Directories

  private constructor(id: string, token: string, directories: Directories) {
    this.#id = id
    this.token = token
    this.#directories = directories
  }

  static async make(directories: Directories): Promise<Organization> {
    const { organizationId, token } = await organizationWithToken(directories.data, NAME)
    return new Organization(organizationId, token, directories)
  }

  startScan(environment: NodeJS.ProcessEnv = {}): Running {
    return start('admin', ['scan', 'run', '--org', NAME, '--data-dir', this.#directories.data], environment)
  }

  /** Runs a last scan. Returns missing and surplus matches and events, one line each. */
  async differences(expected: Matches): Promise<string[]> {
    const { status, stderr } = await until('the brokers are not reachable', async () => {
      const ended = await this.startScan().ended
      return /NOT_PRIMARY|NOT_REPLICATED/.test(ended.stderr) ? undefined : ended
    })
    if (status !== 0) return [`the last scan failed: ${stderr}`]
    const [found, clients] = this.#withStore((store) => [
      matchesInScans(store, this.#id),
      clientsInScans(store, this.#id),
    ])
    const differences = [...differencesOf(expected, found), ...differencesOf(byClient(expected), clients)]
    const { events, added, buffered, waiting } = this.counts()
    if (events !== added) differences.push(`${events} events were written, ${added} are in scans`)
    if (buffered > 0) differences.push(`${buffered} events wait for a scan after the last scan`)
    if (waiting > 0) differences.push(`${waiting} events wait in the outbox after the collector has ended`)
    return differences
  }

  /** The findings of a check of the service's store. */
  findings(): string[] {
    return this.#withStore(findingsOf)
  }

  /**
   * Numbers of events: ever written to the outbox, waiting in the outbox, included in scans,
   * waiting for a scan. Also the number of scans.
   */
  counts(): { events: number; waiting: number; added: number; buffered: number; scans: number } {
    return { ...this.#outboxCounts(), ...this.#scanCounts() }
  }

  /** A run that fails early can end before the collector has made its outbox. */
  #outboxCounts(): { events: number; waiting: number } {
    if (!environmentExists(this.#directories.outbox)) return { events: 0, waiting: 0 }
    const outbox = new OutboxReader(this.#directories.outbox)
    const { everWritten, waiting } = outbox.figures
    void outbox.close()
    return { events: everWritten, waiting }
  }

  #scanCounts(): { added: number; buffered: number; scans: number } {
    return this.#withStore((store) => {
      const scans = store.scans.ofOrganization(this.#id).filter(({ status }) => status === 'completed')
      const added = scans.reduce((sum, { eventsAdded }) => sum + eventsAdded, 0)
      return { added, buffered: store.buffer.count(this.#id), scans: scans.length }
    })
  }

  #withStore<Result>(read: (store: Store) => Result): Result {
    const store = new Store(this.#directories.data, { mustExist: true })
    try {
      return read(store)
    } finally {
      void store.close()
    }
  }
}
