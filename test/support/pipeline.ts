import { Administration } from '../../engine/admin/administration.ts'
import type { UnstoredPlaces } from '../../engine/ingest/accept.ts'
import {
  isTaken,
  MessagePipeline,
  type OutgoingBatch,
  type PipelineOptions,
} from '../../engine/ingest/message-pipeline.ts'
import type { Origin } from '../../engine/ingest/origin.ts'
import { READ_WORK_BYTES } from '../../engine/ingest/read-log.ts'
import { LISTENERS } from '../../engine/ingest/sources.ts'
import { TokenAuthenticator } from '../../engine/ingest/token-authenticator.ts'
import { type Event, unpackBatch } from '../../engine/kernel/event/event.ts'
import type { Clock } from '../../engine/kernel/process/clock.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { totalOf } from '../../engine/store/outcomes.ts'
import type { KnownHosts } from '../../engine/store/registry-in-force.ts'
import type { MonitoringToken } from '../../engine/store/secrets.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { makeOrganization, openStore, type TestStore } from './store.ts'

const trie = new DomainTrie(compileTrie(loadCatalog().rules))
/** Every organization has the built-in registry. */
export const known: KnownHosts = {
  knows: (_organizationId, view, start, end) => trie.matchDotted(view, start, end) !== NO_MATCH,
}

/** An pipeline over a real store, with an organization and its token. */
export interface TestPipeline extends TestStore {
  readonly pipeline: MessagePipeline
  readonly authenticator: TokenAuthenticator
  readonly administration: Administration
  readonly organization: Organization
  /** A token of the organization. */
  readonly token: { readonly raw: string; readonly record: MonitoringToken }
  /** Origins of messages rejected as unauthorized. */
  readonly unauthorized: Origin[]
  /** Takes a message and returns its outcome, or undefined when the pipeline has no space. */
  take(message: string | Uint8Array, origin: Origin): string | undefined
}

export function openPipeline(
  t: { testdir(): string; teardown(work: () => unknown): void },
  options: Partial<PipelineOptions> & { readonly clock?: Clock } = {},
): TestPipeline {
  const opened = openStore(t)
  const { store } = opened
  const clock = options.clock ?? opened.clock
  const administration = new Administration(store, clock)
  const organization = makeOrganization(opened, 'Acme')
  const token = administration.tokens.generate(organization, 'devices')
  const authenticator = new TokenAuthenticator(store, clock)
  const unauthorized: Origin[] = []
  const pipeline = new MessagePipeline(new Uint8Array(READ_WORK_BYTES), known, authenticator, {
    tokenRate: options.tokenRate,
    noteUnauthorized: (origin) => unauthorized.push(origin),
    storesCoverage: options.storesCoverage ?? false,
    holdsQuestions: options.holdsQuestions ?? false,
  })
  pipeline.line.referenceMs = clock.nowMs()
  return {
    ...opened,
    pipeline,
    authenticator,
    administration,
    organization,
    token,
    unauthorized,
    take(message, origin) {
      const bytes = Buffer.from(message)
      pipeline.line.bytes.set(bytes)
      const taken = pipeline.take(0, bytes.length, origin)
      return isTaken(taken) ? taken : undefined
    },
  }
}

/** The events of batches, each with its organization. */
export function eventsOf(batches: readonly OutgoingBatch[]): (Event & { readonly organizationId: string })[] {
  return batches.flatMap(({ organizationId, bytes }) => {
    const batch = unpackBatch(bytes, 100_000)
    if (typeof batch === 'string') throw new Error(batch)
    return batch.events.map((event) => {
      if (typeof event === 'string') throw new Error(event)
      return { organizationId, ...event }
    })
  })
}

/** Of a batch whose events were all stored. */
export const ALL_STORED: UnstoredPlaces = { duplicates: [], outsideDedupWindow: [], rejected: [] }

/** Over all listeners: messages received, and messages with a known outcome. */
export function sumsOf({ sources }: MessagePipeline): { received: number; known: number } {
  let received = 0
  let known = 0
  for (const listener of LISTENERS) {
    received += sources.received[listener]
    known += totalOf(sources.listeners[listener])
  }
  return { received, known }
}
