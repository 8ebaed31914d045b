import { statSync } from 'node:fs'
import type { Command } from 'commander'
import type { z } from 'zod'
import { STANDARD_INPUT } from '../../engine/kernel/process/byte-source.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { type FileProgress, fileProgress } from '../../engine/kernel/process/file-progress.ts'
import { createLogger } from '../../engine/kernel/process/log.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import { catalogInForce } from '../../engine/kernel/process/registry-setting.ts'
import { addSettingOptions, oneOf, readSettings, setting } from '../../engine/kernel/process/settings.ts'
import { exitStatusOf, stopSignal } from '../../engine/kernel/process/signals.ts'
import { printable, printsTable } from '../../engine/kernel/process/table.ts'
import { type Catalog, loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import type { SharedPool } from '../batch/batch-pool.ts'
import { CaptureFile, openCapture } from '../capture/capture-file.ts'
import { lanesFor, readerSettings } from '../config.ts'
import type { DecodeOptions } from '../decode/decode-batch.ts'
import { serverPorts } from '../decode/ports.ts'
import { filePool, type ObserveCounts, type ObservedName, observe } from '../pipeline/observe.ts'
import { InlineObserver } from '../pipeline/observe-inline.ts'
import { RESOLVERS } from '../visibility.ts'
import { directionHint, OUTPUT_FORMATS, ReadOutput } from './read-output.ts'

/**
 * Files up to this size are read in the main thread: starting threads would take longer than
 * reading them.
 */
const SMALL_FILE_BYTES = 4 * 1024 * 1024

const readSchema = readerSettings.extend({
  format: setting(oneOf(OUTPUT_FORMATS).optional(), {
    flag: '--format <format>',
    about: 'Print a table, one JSON object per line, or CSV; by default a table on a terminal, and JSON in a pipe',
  }),
})

interface ReadOptions {
  readonly names?: boolean
  readonly stats?: boolean
  readonly json?: boolean
}

/** posture-collector read: prints the names in capture files, and forwards nothing. */
export function addReadCommand(program: Command): void {
  const read = addSettingOptions(
    program
      .command('read')
      .description('Print the names that the sensor finds in capture files, and forward nothing')
      .argument(
        '<file...>',
        'Files in pcap or pcapng format, plain or compressed with gzip or zstd; - is standard input',
      ),
    readSchema,
  )
    .option('--names', 'Print every name, not only matches')
    .option('--stats', 'Print counters instead of names')
  jsonOption(read)
  read.action(async (files: string[], options: ReadOptions) => {
    const stop = stopSignal()
    const { format: given, ...settings } = readSettings(readSchema, { command: read, environment: process.env })
    const catalog = catalogOf(settings)
    const { names: everyName = false, stats = false } = options
    const format = given ?? (printsTable(options) ? 'table' : 'ndjson')
    const output = new ReadOutput(catalog, format, { everyName, files: files.length })
    const reader = new FileReader(compileTrie(catalog.rules), settings, everyName)
    stop.received.then((signal) => {
      process.exitCode = exitStatusOf(signal)
      reader.stop()
    })
    const damages: Fault[] = []
    for (const file of files) {
      const damage = await reader
        .read(file, (names) => {
          if (!stats) output.names(file, names)
        })
        .then(({ counts, damage }) => {
          if (stats) output.counters(file, counts)
          const hint = directionHint(counts)
          if (hint !== undefined) process.stderr.write(`${printable(file)}: ${hint}\n`)
          return damage
        })
        .catch(faultOf)
      if (damage !== undefined) damages.push(damage)
      if (process.exitCode !== undefined) break
    }
    stop.forget()
    if (!stats) output.end()
    for (const damage of damages.slice(0, -1))
      process.stderr.write(`posture-collector: ${damage.code} ${damage.message}\n`)
    const last = damages.at(-1)
    if (last !== undefined) throw last
  })
}

/** Without an operator's file there is nothing to log, so no logger is created. */
function catalogOf({ registry, logLevel }: z.output<typeof readerSettings>): Catalog {
  if (registry === '') return loadCatalog()
  return catalogInForce(registry, createLogger('posture-collector', logLevel === 'INFO' ? 'WARNING' : logLevel))
}

/** A file that cannot be opened does not stop the others from being read. */
function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error
  throw error
}

interface FileRead {
  readonly counts: ObserveCounts
  /** Why the file ended early. */
  readonly damage: Fault | undefined
}

type TakeNames = (names: readonly ObservedName[]) => void

/** Reads capture files, one after the other, in memory that they share. */
class FileReader {
  readonly #settings: z.output<typeof readerSettings>
  readonly #lanes: number
  readonly #decode: DecodeOptions
  #pool: SharedPool | undefined
  #inline: InlineObserver | undefined
  /** Ends the reading in progress. */
  #stop: () => void = () => {}
  #isStopped = false

  constructor(trie: SharedArrayBuffer, settings: z.output<typeof readerSettings>, everyName: boolean) {
    this.#settings = settings
    this.#lanes = lanesFor('file', settings.decodeWorkers)
    const { loadBalancers } = settings
    this.#decode = { trie, resolvers: compileTrie(RESOLVERS), everyName, ...serverPorts(settings), loadBalancers }
  }

  /** @throws Fault CAPTURE_UNREADABLE, CAPTURE_FORMAT, CAPTURE_DAMAGED */
  async read(path: string, take: TakeNames): Promise<FileRead> {
    const progress = fileProgress(path)
    const isSmall = this.#settings.decodeWorkers === undefined && (sizeOf(path) ?? Infinity) <= SMALL_FILE_BYTES
    try {
      return await (isSmall ? this.#readHere(path, take) : this.#readInThreads(path, take, progress))
    } finally {
      progress.end()
      this.#stop = () => {}
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#stop()
  }

  async #readHere(path: string, take: TakeNames): Promise<FileRead> {
    const file = await CaptureFile.open(path)
    this.#inline ??= new InlineObserver(this.#decode)
    const inline = this.#inline
    this.#stop = () => inline.stop()
    const { counts, damage } = await inline.observe(file, { onNames: take })
    return { counts, damage: damage === undefined ? undefined : new Fault('CAPTURE_DAMAGED', `${path}: ${damage}`) }
  }

  async #readInThreads(path: string, take: TakeNames, progress: FileProgress): Promise<FileRead> {
    this.#pool ??= filePool(this.#lanes)
    const canceled = deferred<void>()
    this.#stop = canceled.resolve
    const { resolvers: _resolvers, ...decode } = this.#decode
    const observation = await observe(
      { kind: 'file', path, descriptor: openCapture(path) },
      {
        ...decode,
        lanes: this.#lanes,
        memory: this.#pool,
        onNames: take,
        onProgress: progress.update,
        cancel: canceled.promise,
      },
    )
    this.#stop = () => void observation.stop()
    if (this.#isStopped) this.#stop()
    const { damage } = await observation.done
    return { counts: observation.counts, damage }
  }
}

/** The size of a regular file in bytes; undefined for a pipe. */
function sizeOf(path: string): number | undefined {
  if (path === STANDARD_INPUT) return undefined
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true ? stat.size : undefined
}
