import { OutboxReader } from '../../collector/outbox/outbox-reader.ts'
import { Store } from '../../engine/store/store.ts'
import { admin, type Running, start } from '../support/programs.ts'
import { findingsOf } from '../support/store.ts'
import { differencesOf, type Matches, matchesInScans } from './oracle.ts'

const NAME = 'Acme'

/** Where the two programs keep what they have. */
export interface Directories {
  /** Of the service. */
  readonly data: string
  readonly outbox: string
}

/** The organization of a test, its collector's token, and what the stores of both programs hold of it. */
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
    const data = ['--data-dir', directories.data]
    const [organization] = await admin('organization', 'create', NAME, '--domain', 'acme.example', ...data)
    const [token] = await admin('token', 'generate', 'sensor', '--org', NAME, ...data)
    return new Organization(String(organization?.['id']), String(token?.['token']), directories)
  }

  startScan(environment: NodeJS.ProcessEnv = {}): Running {
    return start('admin', ['scan', 'run', '--org', NAME, '--data-dir', this.#directories.data], environment)
  }

  /** What a last scan and those before it lack or have too much; one line each. */
  async differences(expected: Matches): Promise<string[]> {
    const { status, stderr } = await this.startScan().ended
    if (status !== 0) return [`the last scan failed: ${stderr}`]
    const differences = differencesOf(
      expected,
      this.#withStore((store) => matchesInScans(store, this.#id)),
    )
    const { events, folded, buffered, waiting } = this.counts()
    if (events !== folded) differences.push(`${events} events were made, ${folded} are in scans`)
    if (buffered > 0) differences.push(`${buffered} events wait for a scan, after the last one`)
    if (waiting > 0) differences.push(`${waiting} events wait in the outbox, after its collector has ended`)
    return differences
  }

  /** What a check of the service's store finds. */
  findings(): string[] {
    return this.#withStore(findingsOf)
  }

  /** Events that the outbox ever made and that wait in it, those that scans took in, and those that wait for one. */
  counts(): { events: number; waiting: number; folded: number; buffered: number; scans: number } {
    return { ...this.#outboxCounts(), ...this.#scanCounts() }
  }

  #outboxCounts(): { events: number; waiting: number } {
    const outbox = new OutboxReader(this.#directories.outbox)
    const { everWritten, waiting } = outbox.figures
    void outbox.close()
    return { events: everWritten, waiting }
  }

  #scanCounts(): { folded: number; buffered: number; scans: number } {
    return this.#withStore((store) => {
      const scans = store.scans.ofOrganization(this.#id).filter(({ status }) => status === 'completed')
      const folded = scans.reduce((sum, { eventsFolded }) => sum + eventsFolded, 0)
      return { folded, buffered: store.buffer.count(this.#id), scans: scans.length }
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
