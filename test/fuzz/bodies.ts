import { readFileSync } from 'node:fs'
import { readFields } from '../../console/form.ts'
import { providerClaims } from '../../console/sign-in/oidc-claims.ts'
import { ProviderError } from '../../console/sign-in/provider-http.ts'
import { challengeOf, readAssertion, readRegistration } from '../../console/sign-in/webauthn.ts'
import { readFormatRule } from '../../engine/admin/format-rule-file.ts'
import { AssessmentFileFault } from '../../engine/assess/file-fault.ts'
import { readFrameworkFile } from '../../engine/assess/framework-file.ts'
import { nodeMessage, readMessage } from '../../engine/cluster/replication/messages.ts'
import { BatchReader } from '../../engine/ingest/batch-reader.ts'
import { packCounters, unpackCounters } from '../../engine/ingest/node-counters.ts'
import { batchFromJson, batchLimits, eventToJson, packBatch, unpackBatch } from '../../engine/kernel/event/event.ts'
import { JsonCheck } from '../../engine/kernel/event/json.ts'
import { unpack } from '../../engine/kernel/event/msgpack.ts'
import type { ShapeCheck } from '../../engine/kernel/event/shape.ts'
import { RegistryFileError, readRegistryText } from '../../registry/registry-file.ts'
import { readYaml, YamlError } from '../../registry/yaml.ts'
import { report } from '../support/coverage.ts'
import { Random } from './random.ts'

/**
 * Sends mutated bodies through the decoders of data from outside. For any bytes: no decoder throws
 * anything but its own errors, takes longer than a bound, or needs more memory than the worker has
 * (main.ts); and a check in pieces decides as a check of the whole.
 */
const BYTES_MAX = 16 * 1024
/** Beyond it an input takes more than linear time: the longest takes 20 ms. */
const MS_MAX = 1000
const EVENTS_MAX = 100
const NOW = Date.parse('2026-11-20T12:00:00Z')

const EVENT = {
  ...{ id: '5c28dc30ef9d3ca80000000000000001', name: 'claude.ai', client: '192.0.2.1', method: 'dns' as const },
  ...{ firstSeenMs: NOW - 60_000, lastSeenMs: NOW, count: 3, user: 'jdoe', bytesSent: 5000 },
}
const UUID = '0b6b1f0e-4a5f-4c0e-9a8e-3f5a2f1c7d10'
const FRAMEWORK = `id: own-a
name: A
categories:
  - name: B
    items:
      - { id: A-1, title: T, question: Q, yes: Y, partial: P, no: N, evidence: E, recommendation: R }
`
const REGISTRY = `platforms:
  - id: acme
    name: Acme
    vendor: Acme
    platform_type: llm_chat
    url: https://llm.acme.example
    risk: { score: 50, why: internal }
    source: [ours]
    domains: [{ domain: llm.acme.example, match: suffix, role: web, specificity: 1 }]
`
const RULE = 'name: a\ndelimiter: ";"\nfields: { time: 1, client: 2, host: 3 }\n'
const CLAIMS = { sub: '1', email: 'ada@acme.example', groups: ['a', 'b'], realm_access: { roles: ['c'] } }
const PROVIDER = {
  nameClaim: 'email',
  groupsClaim: 'realm_access.roles',
  groups: [{ group: 'a', role: 'admin' as const }],
}
const CREDENTIAL = {
  ...{ id: 'YQ', rawId: 'YQ', type: 'public-key' },
  response: {
    clientDataJSON: 'eyJjaGFsbGVuZ2UiOiJhIn0',
    authenticatorData: 'YQ',
    signature: 'YQ',
    attestationObject: 'YQ',
  },
}

interface Decoder {
  readonly example: Buffer
  readonly odd: readonly string[]
  /** Throws an error that is no answer. */
  decode(bytes: Buffer, random: Random): unknown
}

const JSON_ODD = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  '{},',
  '[[',
  '"a":',
  '1e999',
  'null',
  '"__proto__":{}',
  '\\ud800',
  '\u0000',
]
const YAML_ODD = [
  '[',
  '{',
  '- ',
  '? ',
  ': ',
  '&a ',
  '*a',
  '!a ',
  '%A b\n',
  '---\n',
  '#',
  '"',
  "'",
  '>\n',
  '|+\n',
  '\t',
  '\n',
  '<<: ',
  '\\q',
  '@',
]
const MSGPACK_ODD = [
  '90',
  '91',
  '9f',
  'dc2710',
  'dd01000000',
  'ddffffffff',
  '80',
  '8f',
  'df00100000',
  'd472',
  'd40000',
  'c1',
  'c7ff',
  'db7fffffff',
  'cf00000000000003e8',
  'cb7ff8000000000000',
]
const FORM_ODD = ['&', '=', '+', '%', '%zz', '%ff', '%00', 'a=', '__proto__=']
const LIMITS = batchLimits(EVENTS_MAX, BYTES_MAX)
const reader = new BatchReader()

const DECODERS: Readonly<Record<string, Decoder>> = {
  'batch in JSON': {
    example: Buffer.from(JSON.stringify({ events: [eventToJson(EVENT), eventToJson(EVENT)] })),
    odd: JSON_ODD,
    decode: (bytes, random) => {
      if (checked(() => new JsonCheck(LIMITS), bytes, random) === undefined) batchFromJson(bytes.toString(), EVENTS_MAX)
    },
  },
  'batch in msgpack': {
    example: packBatch([EVENT, EVENT], report()),
    odd: MSGPACK_ODD,
    decode: (bytes) => {
      orError(() => unpack(bytes, LIMITS))
      unpackBatch(bytes, EVENTS_MAX)
      reader.read(bytes, EVENTS_MAX, NOW)
    },
  },
  'counters of a node': {
    example: packCounters({ keyUses: [{ organizationId: UUID, keyId: UUID, timeMs: NOW }] }),
    odd: MSGPACK_ODD,
    decode: (bytes) => orError(() => unpackCounters(bytes)),
  },
  'message of a primary': {
    example: nodeMessage('tick', { node: UUID, name: 'a', generation: 1 }),
    odd: MSGPACK_ODD,
    decode: (bytes) => orError(() => readMessage(bytes)),
  },
  framework: {
    example: Buffer.from(FRAMEWORK),
    odd: YAML_ODD,
    decode: (bytes) => or(AssessmentFileFault, () => readFrameworkFile(bytes)),
  },
  'format rule': { example: Buffer.from(RULE), odd: YAML_ODD, decode: (bytes) => readFormatRule(bytes) },
  registry: {
    example: Buffer.from(REGISTRY),
    odd: YAML_ODD,
    decode: (bytes) => or(RegistryFileError, () => readRegistryText('file', bytes.toString())),
  },
  YAML: {
    example: Buffer.from('a: [1, {b: c}]\n'),
    odd: YAML_ODD,
    decode: (bytes) => or(YamlError, () => readYaml(bytes.toString(), { aliasesMax: 100 })),
  },
  form: {
    example: Buffer.from('email=ada%40acme.example&password=a+b&role=admin'),
    odd: FORM_ODD,
    decode: (bytes) => readFields(bytes),
  },
  passkey: {
    example: Buffer.from(JSON.stringify(CREDENTIAL)),
    odd: JSON_ODD,
    decode: (bytes) => {
      for (const read of [readAssertion, readRegistration]) {
        const found = read(bytes.toString())
        if (found !== undefined) challengeOf(found)
      }
    },
  },
  'claims of a provider': {
    example: Buffer.from(JSON.stringify(CLAIMS)),
    odd: JSON_ODD,
    decode: async (bytes) => {
      const claims = parsedObject(bytes.toString())
      await providerClaims(PROVIDER, claims, async () => claims).catch((error: unknown) => {
        if (!(error instanceof ProviderError)) throw error
      })
    },
  },
}

export async function fuzzBodies(seed: number, mutations: number): Promise<void> {
  const random = new Random(seed)
  const decoders = Object.entries(DECODERS)
  for (let done = 0; done < mutations; done++) {
    const [name, decoder] = decoders[done % decoders.length] as (typeof decoders)[number]
    const bytes = mutated(random, decoder)
    const startMs = performance.now()
    try {
      await decoder.decode(bytes, random)
      const ms = performance.now() - startMs
      if (ms > MS_MAX && (await repeatedMs(decoder, bytes)) > MS_MAX) throw new Error(`took ${Math.round(ms)} ms`)
    } catch (error) {
      throw new Error(`seed ${seed}, ${name} ${done}: ${(error as Error).stack}\n${bytes.toString('base64')}`)
    }
  }
}

/** CPU time of this thread for an input, once more, because other work may have delayed it. */
async function repeatedMs(decoder: Decoder, bytes: Buffer): Promise<number> {
  const before = threadCpuMs()
  await decoder.decode(bytes, new Random(1))
  return threadCpuMs() - before
}

/** In milliseconds (proc(5), fields 14 and 15 of stat, in ticks of 10 ms). */
function threadCpuMs(): number {
  const stat = readFileSync('/proc/thread-self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function mutated(random: Random, { example, odd }: Decoder): Buffer {
  let bytes = example
  for (let changes = 1 + random.below(5); changes > 0; changes--) {
    const at = random.below(bytes.length + 1)
    const text = random.of(odd)
    const inserted = odd === MSGPACK_ODD ? Buffer.from(text, 'hex') : Buffer.from(text)
    switch (random.below(5)) {
      case 0:
        bytes = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)])
        break
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.below(12))])
        break
      case 2: {
        const changed = Buffer.from(bytes)
        if (changed.length > 0) changed[random.below(changed.length)] = random.below(256)
        bytes = changed
        break
      }
      case 3: {
        // Much of one part: what is quadratic shows itself.
        const part = random.below(2) === 0 ? inserted : bytes.subarray(at, at + 1 + random.below(60))
        const bytesMax = random.below(8) === 0 ? BYTES_MAX : 1024
        const times = Math.floor(random.below(bytesMax) / Math.max(1, part.length))
        bytes = Buffer.concat([bytes.subarray(0, at), ...Array.from({ length: times }, () => part), bytes.subarray(at)])
        break
      }
      default:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(random.below(at + 1))])
    }
    bytes = bytes.subarray(0, BYTES_MAX)
  }
  return Buffer.from(bytes)
}

/** The error of a check of the whole, which a check in pieces must have, too. */
function checked(create: () => ShapeCheck, bytes: Buffer, random: Random): string | undefined {
  const whole = create()
  const error = whole.push(bytes) ?? whole.end?.()
  const inPieces = create()
  let found: string | undefined
  for (let at = 0; at < bytes.length && found === undefined; ) {
    const end = at + 1 + random.below(random.below(2) === 0 ? 3 : 4096)
    found = inPieces.push(bytes.subarray(at, end))
    at = end
  }
  found ??= inPieces.end?.()
  if (found !== error) throw new Error(`whole: ${error}; in pieces: ${found}`)
  return error
}

function or(expected: abstract new (...parameters: never[]) => Error, decode: () => unknown): void {
  try {
    decode()
  } catch (error) {
    if (!(error instanceof expected)) throw error
  }
}

/** Only nodes can send these messages, so an error of any kind will do. */
function orError(decode: () => unknown): void {
  or(Error, decode)
}

function parsedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
