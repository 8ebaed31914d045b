import { type AnswerTotals, answerTotals, makeAnswerCounters } from '../engine/http/answer-counters.ts'
import type { LabeledValue, MetricRow } from '../engine/kernel/process/metrics.ts'

/** What is counted by its result. */
const RESULTS = {
  /** A password check, at sign-in and before a sensitive change. */
  check: ['correct', 'wrong', 'rate_limited', 'overloaded'],
  /** An uploaded file: `refused` is the file's fault, `busy` asks to try again later. */
  triedFile: ['read', 'refused', 'busy', 'failed'],
  /** A request to an identity provider: `refused` is a host to which the service may not connect. */
  providerRequest: ['answered', 'server_error', 'refused', 'overloaded', 'timed_out', 'failed'],
  /** A request for a block list. */
  blockList: ['sent', 'not_modified', 'unauthorized', 'not_found', 'rate_limited'],
} as const
type Counted = keyof typeof RESULTS
type ResultOf<What extends Counted> = (typeof RESULTS)[What][number]
export type CheckResult = ResultOf<'check'>
export type ProviderRequestResult = ResultOf<'providerRequest'>
export type BlockListResult = ResultOf<'blockList'>

/** Pages, seconds for them, block lists made and dropped. */
const [PAGES, PAGE_SECONDS, LISTS_MADE, LISTS_DROPPED, FIRST_RESULT] = [0, 1, 2, 3, 4] as const
const RESULT_NAMES = Object.entries(RESULTS).flatMap(([what, results]) => results.map((result) => `${what} ${result}`))
const columnOf = (what: Counted, result: string): number => FIRST_RESULT + RESULT_NAMES.indexOf(`${what} ${result}`)

/** Memory in which the console's thread counts, for the main thread to read. */
export interface ConsoleCounterMemory {
  readonly answers: SharedArrayBuffer
  readonly pages: SharedArrayBuffer
}

export function makeConsoleCounters(): ConsoleCounterMemory {
  const columns = FIRST_RESULT + RESULT_NAMES.length
  return { answers: makeAnswerCounters(1), pages: new SharedArrayBuffer(columns * Float64Array.BYTES_PER_ELEMENT) }
}

/** Counts in the console's thread. */
export class ConsoleCounters {
  readonly #row: Float64Array

  constructor(memory: ConsoleCounterMemory = makeConsoleCounters()) {
    this.#row = new Float64Array(memory.pages)
  }

  /** Counts a page and the milliseconds from its request until it was sent. */
  notePage(ms: number): void {
    this.#add(PAGES, 1)
    this.#add(PAGE_SECONDS, ms / 1000)
  }

  note<What extends Counted>(what: What, result: ResultOf<What>): void {
    this.#add(columnOf(what, result), 1)
  }

  /** Counts a list that was not in memory, or was out of date. */
  noteBlockListMade(): void {
    this.#add(LISTS_MADE, 1)
  }

  /** Counts a list that others displaced. */
  noteBlockListDropped(): void {
    this.#add(LISTS_DROPPED, 1)
  }

  #add(column: number, count: number): void {
    this.#row[column] = (this.#row[column] ?? 0) + count
  }
}

/** The metrics of the console, for Prometheus. */
export function consoleRows(
  memory: ConsoleCounterMemory,
  changes: readonly LabeledValue[],
  sessions: number,
): MetricRow[] {
  const { byStatus, bodyBytes, aborted }: AnswerTotals = answerTotals(memory.answers)
  const row = new Float64Array(memory.pages)
  const byResult = (what: Counted): Readonly<Record<string, number>> =>
    Object.fromEntries(RESULTS[what].map((result) => [result, row[columnOf(what, result)] ?? 0]))
  return [
    ['posture_console_answers_total', 'counter', 'Answers of the console by status', byStatus, 'status'],
    ['posture_console_body_bytes_total', 'counter', 'Bytes of bodies sent by the console', bodyBytes],
    [
      'posture_console_answers_aborted_total',
      'counter',
      'Answers of the console aborted because too many waited for slow clients',
      aborted,
    ],
    ['posture_console_pages_total', 'counter', 'Pages and CSV files of the console', row[PAGES] ?? 0],
    [
      'posture_console_page_seconds_total',
      'counter',
      'Time for them, from the request until the page was sent; divided by the pages, the mean',
      row[PAGE_SECONDS] ?? 0,
    ],
    [
      'posture_console_password_checks_total',
      'counter',
      'Password checks at sign-in and before sensitive changes, by result',
      byResult('check'),
      'result',
    ],
    [
      'posture_console_tried_files_total',
      'counter',
      'Files sent to Try a file, by result',
      byResult('triedFile'),
      'result',
    ],
    [
      'posture_console_provider_requests_total',
      'counter',
      'Requests to identity providers, by result',
      byResult('providerRequest'),
      'result',
    ],
    [
      'posture_console_block_lists_total',
      'counter',
      'Requests of devices for block lists, by result',
      byResult('blockList'),
      'result',
    ],
    [
      'posture_console_block_lists_made_total',
      'counter',
      'Block lists made because they were not in memory, or something changed that they depend on',
      row[LISTS_MADE] ?? 0,
    ],
    [
      'posture_console_block_lists_dropped_total',
      'counter',
      'Block lists dropped from memory because the limit of 16 MiB was reached',
      row[LISTS_DROPPED] ?? 0,
    ],
    [
      'posture_console_changes_total',
      'counter',
      'Changes that the console requested, by command and result. session.create counts sign-ins',
      changes,
    ],
    ['posture_console_sessions', 'gauge', 'Stored sessions, including those that expired recently', sessions],
  ]
}
