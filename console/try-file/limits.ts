import { strict as assert } from 'node:assert'
import { MINUTE_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'

const MIB = 1024 * 1024

/** The name of the form's field. */
export const FILE_FIELD = 'file'
/** MiB of an uploaded file. The rest of a larger one is discarded, and the answer says so. */
export const FILE_MIB_MAX = 64
export const FILE_BYTES_MAX = FILE_MIB_MAX * MIB
/**
 * Bytes of an upload that are read, so that the browser shows the answer: it shows none while it
 * sends. Beyond it, the connection is closed.
 */
export const UPLOAD_BYTES_MAX = 4 * FILE_BYTES_MAX
/** Minimum rate of an upload. Slower ones are refused. */
export const UPLOAD_PACE = { graceMs: 10 * SECOND_MS, bytesPerSecondMin: 64 * 1024 }
/** Milliseconds of an upload. Longer ones are refused. */
export const UPLOAD_MS_MAX = 300 * SECOND_MS
/** Parts of a form. It has one, the file. More are refused. */
export const UPLOAD_PARTS_MAX = 4
/** Bytes of the header of a part. */
export const PART_HEADER_BYTES_MAX = 4096
/** Characters of a file name that a page shows. */
export const FILE_NAME_CHARS_MAX = 200

/** Processes that read files at a time, over all organizations. Further files wait. */
export const TRIALS_RUNNING_MAX = 2
/** Files that wait for a process. More are refused with 503. */
export const TRIALS_WAITING_MAX = 8
/** Milliseconds that a file waits. Then it is refused with 503. */
export const TRIAL_WAIT_MS_MAX = 20 * SECOND_MS
/** Resident memory of a process. It is killed if it needs more. */
export const TRIAL_MEMORY_BYTES_MAX = 256 * MIB
/** Milliseconds of processor time, and from the end of the upload to the report. */
export const TRIAL_MS_MAX = 60 * SECOND_MS
/** Milliseconds between two checks of a process. */
export const TRIAL_CHECK_MS = 50
/** Rules of a registry that a process compiles within its memory. More are refused. */
export const TRIAL_RULES_MAX = 100_000
/**
 * Copies of uploaded logs that can still be added, over all organizations; each organization has
 * one. Beyond it, the oldest is removed.
 */
export const KEPT_FILES_MAX = 4
/** Milliseconds that a copy is kept. */
export const KEPT_MS = 15 * MINUTE_MS
/** Milliseconds in which a file is added. Then the reading ends, and the page says so. */
export const ADD_MS_MAX = 60 * SECOND_MS
/** Bytes of standard error that are kept for the log. */
export const TRIAL_ERROR_BYTES_MAX = 16 * 1024

assert(UPLOAD_BYTES_MAX > FILE_BYTES_MAX + PART_HEADER_BYTES_MAX * UPLOAD_PARTS_MAX)
