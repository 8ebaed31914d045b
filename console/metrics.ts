import { type AnswerTotals, answerTotals, makeAnswerCounters } from '../engine/http/answer-counters.ts'
import type { LabeledValue, MetricRow } from '../engine/kernel/process/metrics.ts'

/** The result of a password check, at sign-in and before a sensitive change. */
const CHECK_RESULTS = ['correct', 'wrong', 'rate_limited', 'overloaded'] as const
export type CheckResult = (typeof CHECK_RESULTS)[number]

/**
 * The result of an uploaded file: `refused` is the file's fault, `busy` asks to try again later.
 */
const TRIED_FILE_RESULTS = ['read', 'refused', 'busy', 'failed'] as const
type TriedFileResult = (typeof TRIED_FILE_RESULTS)[number]

/**
 * The result of a request to an identity provider: `refused` is a host to which the service may not
 * connect.
 */
const PROVIDER_REQUEST_RESULTS = ['answered', 'server_error', 'refused', 'overloaded', 'timed_out', 'failed'] as const
export type ProviderRequestResult = (typeof PROVIDER_REQUEST_RESULTS)[number]

/** The result of a request for a block list. */
const BLOCK_LIST_RESULTS = ['sent', 'not_modified', 'unauthorized', 'not_found', 'rate_limited'] as const
export type BlockListResult = (typeof BLOCK_LIST_RESULTS)[number]

/** Columns: pages, seconds for them, then results of checks, tried files, providers, lists. */
const PAGES = 0
const PAGE_SECONDS = 1
const CHECKS = 2
const TRIED_FILES = CHECKS + CHECK_RESULTS.length
const PROVIDER_REQUESTS = TRIED_FILES + TRIED_FILE_RESULTS.length
const BLOCK_LISTS = PROVIDER_REQUESTS + PROVIDER_REQUEST_RESULTS.length
const BLOCK_LISTS_MADE = BLOCK_LISTS + BLOCK_LIST_RESULTS.length
const BLOCK_LISTS_DROPPED = BLOCK_LISTS_MADE + 1
const COLUMNS = BLOCK_LISTS_DROPPED + 1

/** Memory in which the console's thread counts, for the main thread to read. */
export interface ConsoleCounterMemory {
  readonly answers: SharedArrayBuffer
  readonly pages: SharedArrayBuffer
}

export function makeConsoleCounters(): ConsoleCounterMemory {
  const pages = new SharedArrayBuffer(COLUMNS * Float64Array.BYTES_PER_ELEMENT)
  return { answers: makeAnswerCounters(1), pages }
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

  noteCheck(result: CheckResult): void {
    this.#add(CHECKS + CHECK_RESULTS.indexOf(result), 1)
  }

  noteTriedFile(result: TriedFileResult): void {
    this.#add(TRIED_FILES + TRIED_FILE_RESULTS.indexOf(result), 1)
  }

  noteProviderRequest(result: ProviderRequestResult): void {
    this.#add(PROVIDER_REQUESTS + PROVIDER_REQUEST_RESULTS.indexOf(result), 1)
  }

  noteBlockList(result: BlockListResult): void {
    this.#add(BLOCK_LISTS + BLOCK_LIST_RESULTS.indexOf(result), 1)
  }

  /** Counts a list that was not in memory, or was out of date. */
  noteBlockListMade(): void {
    this.#add(BLOCK_LISTS_MADE, 1)
  }

  /** Counts a list that others displaced. */
  noteBlockListDropped(): void {
    this.#add(BLOCK_LISTS_DROPPED, 1)
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
  const checks = CHECK_RESULTS.map((result, at) => [result, row[CHECKS + at] ?? 0] as const)
  const triedFiles = TRIED_FILE_RESULTS.map((result, at) => [result, row[TRIED_FILES + at] ?? 0] as const)
  const requests = PROVIDER_REQUEST_RESULTS.map((result, at) => [result, row[PROVIDER_REQUESTS + at] ?? 0] as const)
  const blockLists = BLOCK_LIST_RESULTS.map((result, at) => [result, row[BLOCK_LISTS + at] ?? 0] as const)
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
      Object.fromEntries(checks),
      'result',
    ],
    [
      'posture_console_tried_files_total',
      'counter',
      'Files sent to Try a file, by result',
      Object.fromEntries(triedFiles),
      'result',
    ],
    [
      'posture_console_provider_requests_total',
      'counter',
      'Requests to identity providers, by result',
      Object.fromEntries(requests),
      'result',
    ],
    [
      'posture_console_block_lists_total',
      'counter',
      'Requests of devices for block lists, by result',
      Object.fromEntries(blockLists),
      'result',
    ],
    [
      'posture_console_block_lists_made_total',
      'counter',
      'Block lists made because they were not in memory, or something changed that they depend on',
      row[BLOCK_LISTS_MADE] ?? 0,
    ],
    [
      'posture_console_block_lists_dropped_total',
      'counter',
      'Block lists dropped from memory because the limit of 16 MiB was reached',
      row[BLOCK_LISTS_DROPPED] ?? 0,
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
