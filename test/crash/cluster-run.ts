import { setTimeout as later } from 'node:timers/promises'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { Store } from '../../engine/store/store.ts'
import { Random } from '../fuzz/random.ts'
import { primaryAmong, type TestNode } from '../support/cluster-node.ts'
import { type Ended, run } from '../support/programs.ts'
import { findingsOf, Sender } from '../support/store.ts'
import { EXPECTED_END, SupervisedNode } from '../support/supervised-node.ts'
import { organizationWithToken } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'
import { CLUSTER_FAULTS, type ClusterFault, type ClusterSite, causeFault } from './cluster-faults.ts'
import { between, SCAN_LATER } from './crash-run.ts'
import { type AcknowledgedBatch, unstored } from './missing-batches.ts'
import { matchesInScans } from './oracle.ts'

/*
 * Runs nodes and three brokers, and causes faults of them (cluster-faults.ts). Senders repeat each
 * batch until it is acknowledged, at any node, and changes are made at any node that accepts them.
 * In the end, each acknowledged event is in a scan once, each confirmed change is in the audit log
 * once, and the stores of all nodes are the same.
 */

const SENDERS = 3
const BATCH_EVENTS = 20
const FAULT_MS = { least: 100, most: 1500 } as const
/** Between two batches of a sender, and between two changes, so that the cluster recovers soon. */
const SENDER_PAUSE_MS = { least: 0, most: 100 } as const
const CHANGE_PAUSE_MS = { least: 0, most: 1000 } as const
const NAME = 'claude.ai'
/** The node was away too long. If the brokers have lost messages, it says something else. */
const TRIMMED = /BROKERS_LOST.*it begins with message|ended with null/
/** The nodes write what they report every few seconds, so the stores differ at most instants. */
const SETTLE_MS = 120_000

export interface ClusterRunOptions {
  readonly site: ClusterSite
  readonly seed: number
  /** How often each kind of fault happens. */
  readonly faults: Readonly<Record<ClusterFault, number>>
  readonly onFault?: () => void
}

export interface ClusterReport {
  readonly faults: Readonly<Record<ClusterFault, number>>
  /** Changes of the primary. */
  readonly generations: number
  readonly acknowledged: number
  readonly confirmed: number
  /** Violations, one line each. */
  readonly differences: readonly string[]
}

export class ClusterRun {
  readonly #options: ClusterRunOptions
  readonly #nodes: readonly TestNode[]
  readonly #faults = Object.fromEntries(CLUSTER_FAULTS.map((kind) => [kind, 0])) as Record<ClusterFault, number>
  readonly #differences: string[] = []
  readonly #batches: AcknowledgedBatch[] = []
  /** What ended processes of the nodes logged, by node. */
  readonly #logs = new Map<string, string>()
  /** Labels of the API keys whose creation was confirmed. */
  readonly #confirmed: string[] = []
  #organizationId = ''
  #token = ''
  #isFinishing = false

  constructor(options: ClusterRunOptions) {
    this.#options = options
    this.#nodes = options.site.nodes
  }

  async report(): Promise<ClusterReport> {
    const [first] = this.#nodes as [TestNode]
    const { organizationId, token } = await organizationWithToken(first.directory)
    this.#organizationId = organizationId
    this.#token = token
    const supervised = this.#nodes.map((node) => new SupervisedNode(node, (ended) => this.#judge(node, ended)))
    let generations = 0
    try {
      supervised[0]?.start()
      await primaryAmong([first])
      for (const other of supervised.slice(1)) other.start()
      const traffic = [...Array(SENDERS).keys()].map((number) => this.#send(number))
      const changes = this.#change()
      const work = Promise.all([...traffic, changes])
      await Promise.race([this.#causeFaults(), work])
      this.#isFinishing = true
      await work
      const primary = await primaryAmong(this.#nodes)
      generations = await this.#compare(primary)
    } catch (error) {
      const logs = this.#nodes.map((node) => `${node.name}: ${node.logEnd}`)
      this.#differences.push([(error as Error).message, JSON.stringify(this.#faults), ...logs].join('\n'))
    } finally {
      await Promise.all(supervised.map(async (each) => this.#keepLog(each.node.name, await each.stop('SIGKILL'))))
    }
    return {
      faults: this.#faults,
      generations,
      acknowledged: this.#acknowledged,
      confirmed: this.#confirmed.length,
      differences: this.#differences,
    }
  }

  /** Events. */
  get #acknowledged(): number {
    return this.#batches.length * BATCH_EVENTS
  }

  /** What the nodes logged, by node. */
  get logs(): ReadonlyMap<string, string> {
    return this.#logs
  }

  #keepLog(name: string, ended: Ended | undefined): void {
    this.#logs.set(name, `${this.#logs.get(name) ?? ''}${ended?.stderr ?? ''}\n`)
  }

  #judge({ name }: TestNode, ended: Ended): void {
    this.#keepLog(name, ended)
    const { status, signal, stderr } = ended
    const isExpected = signal === 'SIGKILL' || EXPECTED_END.test(stderr) || TRIMMED.test(stderr)
    const lines = stderr.replaceAll(SCAN_LATER, '').trim().split('\n')
    const isError = (line: string): boolean => /INTERNAL|"level":[56]0/.test(line)
    const errors = isExpected ? lines.filter(isError) : lines.slice(-6)
    if (errors.length > 0) this.#differences.push(`${name} ended with ${status ?? signal}: ${errors.join('\n  ')}`)
  }

  async #send(number: number): Promise<void> {
    const random = new Random(this.#options.seed * 16 + number)
    const sender = new Sender()
    let first = 1
    while (!this.#isFinishing) {
      const events = Array.from({ length: BATCH_EVENTS }, () => sender.event(NAME, Date.now()))
      const body = packBatch(events)
      await until('a batch is not acknowledged', async () => {
        const node = random.of(this.#nodes)
        const answer = await node.post(this.#token, body).catch(() => undefined)
        if (answer === undefined || answer.status === 503) return undefined
        if (answer.status !== 200) this.#differences.push(`a batch was answered with ${answer.status}: ${answer.text}`)
        const ids = { instance: sender.instance, first, count: BATCH_EVENTS }
        this.#batches.push({ ...ids, node: node.name, acknowledgedAt: new Date().toISOString() })
        return true
      })
      first += BATCH_EVENTS
      await later(between(random, SENDER_PAUSE_MS))
    }
  }

  /** Creates and revokes API keys. A change that was not confirmed may have happened. */
  async #change(): Promise<void> {
    const random = new Random(this.#options.seed * 16 + 9)
    for (let number = 0; !this.#isFinishing; number++) {
      // The others refuse changes, after a process was started for it.
      const node = (random.below(2) === 0 ? await this.#primaryNow() : undefined) ?? random.of(this.#nodes)
      const label = `key ${number}`
      const where = ['--org', 'Acme', '--json', ...node.data]
      // In a process of its own: a paused node can have the lock of the store.
      const created = await run('admin', ['key', 'create', label, '--scope', 'scores:read', ...where])
      if (created.status === 0) this.#confirmed.push(label)
      else if (/active API keys already/.test(created.stderr)) await this.#revokeAll(node)
      else if (!/NOT_PRIMARY|NOT_REPLICATED|NOT_FOUND/.test(created.stderr)) this.#differences.push(created.stderr)
      const id = /"id":"([^"]+)"/.exec(created.stdout)?.[1]
      if (id !== undefined && random.below(4) === 0) await run('admin', ['key', 'revoke', id, ...where])
      if (random.below(8) === 0) await run('admin', ['scan', 'run', ...where])
      await later(between(random, CHANGE_PAUSE_MS))
    }
  }

  /** Also those whose creation was not confirmed. */
  async #revokeAll({ data }: TestNode): Promise<void> {
    const where = ['--org', 'Acme', '--json', ...data]
    const { stdout } = await run('admin', ['key', 'list', ...where])
    for (const [, id = ''] of stdout.matchAll(/"id":"([^"]+)"/g)) await run('admin', ['key', 'revoke', id, ...where])
  }

  async #causeFaults(): Promise<void> {
    const { site, faults, seed } = this.#options
    const random = new Random(seed * 16 + 8)
    const isLeft = (kind: ClusterFault): boolean => this.#faults[kind] < faults[kind]
    while (CLUSTER_FAULTS.some(isLeft) && this.#differences.length === 0) {
      await this.#progress(random.below(2) === 0)
      await later(between(random, FAULT_MS))
      const kind = random.of(CLUSTER_FAULTS.filter(isLeft))
      await causeFault(kind, site, await this.#primaryNow(), random)
      this.#faults[kind]++
      this.#options.onFault?.()
    }
  }

  /** Waits for an acknowledged batch, and for a confirmed change: the cluster has recovered. */
  async #progress(withChange: boolean): Promise<void> {
    const [acknowledged, confirmed] = [this.#acknowledged, this.#confirmed.length]
    await until('the cluster does not recover', () => {
      const isChanged = !withChange || this.#confirmed.length > confirmed
      return (this.#acknowledged > acknowledged && isChanged) || this.#differences.length > 0 || undefined
    })
  }

  async #primaryNow(): Promise<TestNode | undefined> {
    for (const node of this.#nodes) if (await node.isPrimary().catch(() => false)) return node
    return undefined
  }

  /** How the stores differ from the first one, one line for each node. */
  #different(): string[] {
    const [first = new Map(), ...others] = this.#nodes.map((node) => withStore(node, contentOf))
    return others.flatMap((content, index) => {
      const keys = new Set([...first.keys(), ...content.keys()])
      const rows = [...keys].filter((key) => first.get(key) !== content.get(key))
      if (rows.length === 0) return []
      const node = this.#nodes[index + 1]
      return [`${node?.name} differs in ${rows.length} records: ${rows.slice(0, 5).join(', ')}\n  ${node?.logEnd}`]
    })
  }

  /** Returns the number of primaries that there were. */
  async #compare(primary: TestNode): Promise<number> {
    if (this.#differences.length > 0) return 0
    await primary.untilRead()
    await until('no last scan', async () => {
      const { status } = await run('admin', ['scan', 'run', '--org', 'Acme', ...primary.data])
      return status === 0 ? true : undefined
    })
    const endMs = performance.now() + SETTLE_MS
    let different = this.#different()
    while (different.length > 0 && performance.now() < endMs) {
      await later(100)
      different = this.#different()
    }
    this.#differences.push(...different)
    return withStore(primary, (store) => {
      for (const { instance, first, node, acknowledgedAt } of unstored(store, this.#organizationId, this.#batches)) {
        const batch = `batch ${instance} ${first}, acknowledged by ${node} at ${acknowledgedAt}`
        this.#differences.push(`${batch}: the store does not have it`)
      }
      const found = matchesInScans(store, this.#organizationId).get('claude')?.get(NAME)
      if (found !== this.#acknowledged)
        this.#differences.push(
          `${this.#acknowledged} events were acknowledged, ${found} are in scans, ${store.buffer.count(this.#organizationId)} wait for one`,
        )
      const created = store.auditLog
        .ofOrganization(this.#organizationId)
        .flatMap(({ action, subject }) => (action === 'api-key.create' ? [subject] : []))
      for (const label of this.#confirmed) {
        const times = created.filter((subject) => subject === label).length
        if (times !== 1) this.#differences.push(`${label} is ${times} times in the audit log`)
      }
      this.#differences.push(...findingsOf(store).map((finding) => `in the store: ${finding}`))
      return store.environment.read(() => store.environment.replication.state)?.generation ?? 0
    })
  }
}

function withStore<Result>(node: TestNode, read: (store: Store) => Result): Result {
  const store = new Store(node.directory, { mustExist: true })
  try {
    return store.environment.read(() => read(store))
  } finally {
    void store.close()
  }
}

/** All records of all tables, and how far the store is. */
function contentOf(store: Store): Map<string, string> {
  const rows = new Map<string, string>()
  for (const [name, table] of store.environment.tables) {
    for (const { key, value } of table.getRange({})) rows.set(`${name} ${key.toString('hex')}`, value.toString('hex'))
  }
  rows.set(`change ${store.environment.replication.state?.change}`, '')
  return rows
}
