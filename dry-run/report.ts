import { z } from 'zod'
import {
  COVERAGE_COUNT_MAX,
  COVERAGE_COUNTER_NAMES,
  type CoverageCounter,
} from '../engine/kernel/event/coverage-report.ts'
import type { Platform } from '../registry/platform.ts'
import type { RegistryFile } from '../registry/registry-file.ts'
import { PLATFORM_NAMES_LISTED_MAX, PLATFORMS_LISTED_MAX, PROBLEMS_LISTED_MAX, UNMATCHED_LISTED_MAX } from './limits.ts'

/*
 * The protocol of the process that reads an uploaded file:
 *
 *   standard input    length of the order, u32, little-endian; the order as JSON; the file
 *   standard output   the report as JSON
 *
 * The parent validates the report: a hostile file may have taken over the process.
 */
export const ORDER_LENGTH_BYTES = 4

/** What the process must know about the organization. It has no access to the store. */
export interface Order {
  /** The platforms of an installed release. Without it, the built-in ones. */
  readonly platforms?: readonly Platform[]
  /** Changes to these platforms: the operator's for all organizations, and its own. */
  readonly serviceWide: RegistryFile
  readonly own: RegistryFile
  /** Where the evidence window of the organization begins, in milliseconds since 1970. */
  readonly windowStartMs: number
}

const count = z.number().int().nonnegative().max(COVERAGE_COUNT_MAX)
const timeMs = z.number().min(-8.64e15).max(8.64e15)
const name = z.string().max(300)
const text = z.string().max(1000)
/** Log formats are a fixed list, much shorter than this. */
const FORMATS_MAX = 200

const platform = z.object({
  id: text,
  name: text,
  matches: count,
  clients: count,
  /** `clients` is a lower bound. */
  clientsIncomplete: z.boolean(),
  firstMs: timeMs,
  lastMs: timeMs,
  /** The most frequent of its names in the file. */
  names: z.array(name).max(PLATFORM_NAMES_LISTED_MAX),
})
export type TriedPlatform = z.output<typeof platform>

const found = {
  compression: z.enum(['none', 'gzip', 'zstd']),
  /** Decompressed bytes that were read. */
  bytes: count,
  /** Whether the whole file was read, or which limit ended the reading. */
  ended: z.enum(['complete', 'bytes', 'time']),
  /** Why the file could not be read to its end; '' if it is intact. */
  damage: text,
  platforms: z.array(platform).max(PLATFORMS_LISTED_MAX),
  platformsTotal: count,
  /** The most frequent names of no platform. */
  unmatchedNames: z.array(z.object({ name, count })).max(UNMATCHED_LISTED_MAX),
}

const counters = Object.fromEntries(COVERAGE_COUNTER_NAMES.map((each) => [each, count])) as Record<
  CoverageCounter,
  typeof count
>

const captureReport = z.object({
  kind: z.literal('capture'),
  format: z.enum(['pcap', 'pcapng']),
  /** What was seen and what could not be seen. */
  coverage: z.object(counters),
  ...found,
})

const problem = z.object({
  /** '' if no format was recognized. */
  format: text,
  reason: text,
  count,
  /** The first such line, from 1. */
  line: count,
  /** Its beginning, redacted. */
  sample: text,
})
export type TriedProblem = z.output<typeof problem>

/** Messages by outcome. They add up to `messages`. */
export const TRIED_OUTCOMES = [
  'matched',
  'unmatched',
  'noDomain',
  'skipped',
  'ambiguous',
  'rejected',
  'unknown',
] as const
export type TriedOutcome = (typeof TRIED_OUTCOMES)[number]

const logReport = z.object({
  kind: z.literal('log'),
  lines: count,
  messages: count,
  outcomes: z.object(
    Object.fromEntries(TRIED_OUTCOMES.map((each) => [each, count])) as Record<TriedOutcome, typeof count>,
  ),
  formats: z.array(z.object({ id: text, messages: count })).max(FORMATS_MAX),
  problems: z.array(problem).max(PROBLEMS_LISTED_MAX),
  /** Why no message was understood, and the next step, as `ingest file` says it; '' otherwise. */
  notUnderstood: text,
  /** Matched messages before the evidence window, which no scan would show. */
  outsideWindow: count,
  /** Messages that were longer than allowed, of which only the beginning was read. */
  truncated: count,
  ...found,
})

/** The file is of no kind that can be read. */
const refusal = z.object({ kind: z.literal('refused'), reason: text })

export const fileReport = z.discriminatedUnion('kind', [captureReport, logReport, refusal])
export type FileReport = z.output<typeof fileReport>
export type CaptureReport = z.output<typeof captureReport>
export type LogReport = z.output<typeof logReport>
