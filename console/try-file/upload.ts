import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import type { FileReport } from '../../dry-run/report.ts'
import type { BodyEnd, TakeChunk } from '../../engine/http/port.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'
import type { FileProcess, Reading } from './file-process.ts'
import type { FileCopy } from './kept-files.ts'
import {
  FILE_BYTES_MAX,
  FILE_FIELD,
  FILE_MIB_MAX,
  FILE_NAME_CHARS_MAX,
  PART_HEADER_BYTES_MAX,
  TRIAL_MEMORY_BYTES_MAX,
  TRIAL_MS_MAX,
  UPLOAD_BYTES_MAX,
  UPLOAD_MS_MAX,
  UPLOAD_PACE,
  UPLOAD_PARTS_MAX,
} from './limits.ts'
import type { Unready } from './trials.ts'

/** A posted form whose body is read in chunks. */
export interface Upload {
  readonly contentType: string
  readonly isAborted: () => boolean
  readonly chunks: (bytesMax: number, take: TakeChunk, pace: typeof UPLOAD_PACE) => Promise<BodyEnd>
}

/** What became of an uploaded file. */
export type Outcome =
  | {
      readonly kind: 'read'
      readonly name: string
      readonly bytes: number
      /** undefined if nobody asked for it. */
      readonly copy: FileCopy | undefined
      readonly report: Exclude<FileReport, { kind: 'refused' }>
    }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

type Refused = Extract<Outcome, { kind: 'refused' }>

const MIB = 1024 * 1024
const UNREADY: Readonly<Record<Unready, Refused>> = {
  own: refused(429, 'Another file of this organization is being read. Try again when its result is shown'),
  others: refused(503, 'The service is reading other files. Try again in a minute'),
  registry: refused(
    422,
    'The registry has too many own domains for this page. Use posture-admin ingest file --dry-run',
  ),
}
const TOO_LARGE = refused(413, `The file is larger than ${FILE_MIB_MAX} MiB. Try a part of it`)
const TOO_SLOW = refused(408, 'The file arrived too slowly. Try a part of it')
const FAILED: Readonly<Record<Extract<Reading, { kind: 'failed' }>['why'], Refused>> = {
  memory: refused(
    422,
    `The file needs more than ${TRIAL_MEMORY_BYTES_MAX / MIB} MB of memory to read. Try a part of it`,
  ),
  time: refused(422, `The file takes longer than ${TRIAL_MS_MAX / 1000} seconds to read. Try a part of it`),
  crash: refused(
    422,
    'The file could not be read: the process that reads it failed. The log of the service has the reason',
  ),
  canceled: refused(408, 'The upload was canceled'),
}

/** RFC 2046 §5.1.1: 1 to 70 characters. With an empty one, the parser would not end. */
const BOUNDARY = /; *boundary=(?:"[^"]{1,70}"|[^\s";]{1,70}) *(?:;|$)/i

/**
 * Reads an upload into a process that `start` provides, which happens only if there is a file. The
 * whole body is read before the answer, because browsers show none while they send.
 *
 * @param copy gets the bytes of the file as well; it is removed if there is no report
 */
export async function receiveFile(
  upload: Upload,
  start: (isCanceled: () => boolean) => Promise<FileProcess | Unready>,
  copy?: FileCopy,
): Promise<Outcome> {
  const receiver = new Receiver(upload, start, copy)
  const outcome = await receiver.receive()
  if (outcome.kind === 'refused') await copy?.remove()
  return outcome
}

class Receiver {
  readonly #upload: Upload
  readonly #start: (isCanceled: () => boolean) => Promise<FileProcess | Unready>
  readonly #copy: FileCopy | undefined
  /** The first error. What follows is discarded. */
  #refusal: Refused | undefined
  readonly #refusedNow = deferred<void>()
  #file: Promise<Outcome> | undefined
  #isOver = false
  #endWriting: () => void = () => {}

  constructor(
    upload: Upload,
    start: (isCanceled: () => boolean) => Promise<FileProcess | Unready>,
    copy: FileCopy | undefined,
  ) {
    this.#upload = upload
    this.#start = start
    this.#copy = copy
  }

  async receive(): Promise<Outcome> {
    const parser = this.#parser()
    const take = (chunk: Uint8Array): void | Promise<void> => {
      if (parser === undefined || this.#refusal !== undefined) return
      return new Promise<void>((resolve) => {
        // After an error, the parser does not call back.
        this.#endWriting = resolve
        parser.write(chunk, () => resolve())
      })
    }
    const overdue = deferred<BodyEnd>()
    const timer = setTimeout(() => overdue.resolve('too slow'), UPLOAD_MS_MAX)
    const end = await Promise.race([this.#upload.chunks(UPLOAD_BYTES_MAX, take, UPLOAD_PACE), overdue.promise])
    clearTimeout(timer)
    if (end === 'too slow') this.#refuse(TOO_SLOW)
    if (end === 'too large') this.#refuse(TOO_LARGE)
    if (end === 'aborted') this.#refuse(FAILED.canceled)
    if (this.#refusal === undefined && parser !== undefined) await this.#finish(parser)
    const outcome = await this.#file
    this.#isOver = true
    return this.#refusal ?? outcome ?? refused(400, 'Choose a file first')
  }

  /** undefined if the form is not of this kind. */
  #parser(): BusboyInstance | undefined {
    const { contentType } = this.#upload
    if (!/^multipart\/form-data *;/i.test(contentType)) {
      this.#refuse(refused(415, 'The form was not sent as multipart/form-data'))
      return undefined
    }
    if (!BOUNDARY.test(contentType)) {
      this.#refuse(refused(400, 'The form has no valid boundary'))
      return undefined
    }
    const faulty = (message: string) => () => this.#refuse(refused(400, message))
    try {
      const parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: {
          ...{ files: 1, fields: 0, parts: UPLOAD_PARTS_MAX },
          ...{ headerSize: PART_HEADER_BYTES_MAX, fieldNameSize: 100, fieldSize: 0 },
        },
      })
      parser.on('file', (field, file, name) => this.#take(field, file, name))
      for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit']) {
        parser.on(event, faulty('The form has more than one file'))
      }
      parser.on('error', faulty('The form is not valid multipart/form-data'))
      return parser
    } catch {
      this.#refuse(refused(400, 'The form is not valid multipart/form-data'))
      return undefined
    }
  }

  #finish(parser: BusboyInstance): Promise<void> {
    const finished = new Promise<void>((resolve) => parser.once('finish', () => resolve()))
    parser.end()
    return Promise.race([finished, this.#refusedNow.promise])
  }

  #take(field: string, file: BusboyFileStream, name: string): void {
    // The error of a file that ends early. The parser reports it, too, but not in all cases.
    file.on('error', () => this.#refuse(refused(400, 'The file is incomplete')))
    if (field !== FILE_FIELD) {
      file.resume()
      this.#refuse(refused(400, 'The form has a file in another field'))
      return
    }
    this.#file = this.#read(file, name)
  }

  async #read(file: BusboyFileStream, name: string): Promise<Outcome> {
    let process: FileProcess | undefined
    let bytes = 0
    this.#refusedNow.promise.then(() => {
      process?.cancel()
      // The parser gets no more bytes, so the file would never end.
      file.destroy()
    })
    try {
      for await (const chunk of file as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > FILE_BYTES_MAX) {
          this.#refuse(TOO_LARGE)
          break
        }
        process ??= await this.#started()
        if (process !== undefined) await Promise.all([process.write(chunk), this.#copy?.write(chunk)])
      }
    } catch {
      this.#refuse(refused(400, 'The file is incomplete'))
    }
    if (this.#refusal !== undefined) process?.cancel()
    if (process === undefined) return refused(400, name === '' ? 'Choose a file first' : 'The file is empty')
    process.end()
    const reading = await process.result
    if (reading.kind === 'failed') return FAILED[reading.why]
    const { report } = reading
    if (report.kind === 'refused') return refused(422, report.reason)
    return { kind: 'read', name: shownName(name), bytes, copy: this.#copy, report }
  }

  async #started(): Promise<FileProcess | undefined> {
    const process = await this.#start(() => this.#isOver || this.#upload.isAborted())
    if (typeof process !== 'string') return process
    this.#refuse(UNREADY[process])
    return undefined
  }

  #refuse(refusal: Refused): void {
    this.#refusal ??= refusal
    this.#refusedNow.resolve()
    this.#endWriting()
  }
}

function refused(status: number, message: string): Refused {
  return { kind: 'refused', status, message }
}

/** The file name as text of one line. */
function shownName(name: string): string {
  const text = name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '').slice(0, FILE_NAME_CHARS_MAX)
  return text === '' ? 'the file' : text
}
