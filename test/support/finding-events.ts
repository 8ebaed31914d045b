import {
  type ClientFacts,
  type FindingEvent,
  type PlatformFacts,
  SEVERITIES,
} from '../../engine/export/finding-event.ts'
import { DECISION_STATES } from '../../engine/store/decisions.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import * as fc from './property.ts'

const TIME_MS = Date.UTC(2026, 10, 20, 9, 15, 2)

export const DEEPSEEK: PlatformFacts = {
  id: 'deepseek',
  name: 'DeepSeek',
  vendor: 'DeepSeek',
  type: 'llm_chat',
  url: 'https://www.deepseek.com',
  decision: 'waiting',
  risk: 85,
  confidence: 0.7134,
  matches: 41,
  clients: 3,
  firstSeenMs: TIME_MS - 86_400_000,
  lastSeenMs: TIME_MS - 1000,
  domains: ['chat.deepseek.com', 'deepseek.com'],
}

export const FINDING: FindingEvent = {
  id: '7f2b1e0c-5a34-4a0e-9f77-0c1d2e3f4a5b',
  kind: 'platform.in-use',
  title: 'AI platform in use',
  message: 'DeepSeek is in use and waits for a decision',
  severity: 'critical',
  timeMs: TIME_MS,
  isAlert: true,
  organization: { id: '11111111-2222-4333-8444-555555555555', name: 'Acme' },
  platform: DEEPSEEK,
}

/** Texts with everything that a line format might mistake for its own characters. */
const HOSTILE = ['|', '=', '\\', '\n', '\r\n', '\u2028', '^', '\t', '\0', ' a=b', '\\n', 'ü', '💥', '"', '\ud800']
const text = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ maxLength: 5 })), { maxLength: 8 })
  .map((parts) => parts.join(''))
const timeMs = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) })
const count = fc.integer({ min: 1, max: 1_000_000 })

const platform: fc.Arbitrary<PlatformFacts> = fc.record({
  id: fc.constantFrom('chatgpt', 'own-1'),
  name: text,
  vendor: text,
  type: fc.constantFrom(...(Object.keys(PLATFORM_TYPES) as PlatformType[])),
  url: text,
  decision: fc.constantFrom(...DECISION_STATES),
  risk: fc.integer({ min: 0, max: 100 }),
  confidence: fc.double({ min: 0, max: 1, noNaN: true }),
  matches: count,
  clients: count,
  firstSeenMs: timeMs,
  lastSeenMs: timeMs,
  domains: fc.array(fc.domain(), { maxLength: 20 }),
})

const client: fc.Arbitrary<ClientFacts> = fc.record({
  address: fc.oneof(fc.ipV4(), fc.ipV6(), text),
  user: text,
})

/** Any finding. All texts of users may be hostile. */
export const anyFinding: fc.Arbitrary<FindingEvent> = fc.record({
  id: fc.uuid(),
  kind: fc.constantFrom('platform.in-use', 'alert.new-platform'),
  title: fc.constantFrom('AI platform in use', 'New AI platform'),
  message: text,
  severity: fc.constantFrom(...SEVERITIES),
  timeMs,
  isAlert: fc.boolean(),
  organization: fc.record({ id: fc.uuid(), name: text }),
  url: fc.option(text, { nil: undefined }),
  platform: fc.option(platform, { nil: undefined }),
  clients: fc.option(fc.array(client, { maxLength: 3 }), { nil: undefined }),
  details: fc.option(fc.dictionary(fc.constantFrom('threshold', 'sensor', 'devTime'), fc.oneof(text, count)), {
    nil: undefined,
  }),
})
