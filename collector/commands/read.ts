import type { Command } from 'commander'
import type { z } from 'zod'
import { Fault } from '../../engine/process/error-codes.ts'
import { fileProgress } from '../../engine/process/file-progress.ts'
import { createLogger } from '../../engine/process/log.ts'
import { jsonOption } from '../../engine/process/program.ts'
import { catalogInForce } from '../../engine/process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../../engine/process/settings.ts'
import { exitStatusOf, stopSignal } from '../../engine/process/shutdown.ts'
import { printRows } from '../../engine/process/table.ts'
import { type Catalog, loadCatalog, type Rule } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { withInferredRole } from '../../registry/infer-role.ts'
import { lanesFor, readerSettings } from '../config.ts'
import { type ObserveCounts, type ObservedName, observe } from '../pipeline/observe.ts'

/** Rows collected for a table on a terminal. More rows are printed as further tables. */
const TABLE_ROWS_MAX = 1000

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
    readerSettings,
  )
    .option('--names', 'Print every name, not only matches')
    .option('--stats', 'Print counters instead of names')
  jsonOption(read)
  read.action(async (files: string[], options: ReadOptions) => {
    const stop = stopSignal()
    const settings = readSettings(readerSettings, { command: read, environment: process.env })
    const { rules } = catalogOf(settings)
    const trie = compileTrie(rules)
    const damages: Fault[] = []
    for (const file of files) {
      const damage = await readFile(file, trie, rules, settings, options, stop.received).catch(faultOf)
      if (damage !== undefined) damages.push(damage)
      if (process.exitCode !== undefined) break
    }
    stop.forget()
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

async function readFile(
  path: string,
  trie: SharedArrayBuffer,
  rules: readonly Rule[],
  settings: z.output<typeof readerSettings>,
  options: ReadOptions,
  stopped: Promise<'SIGINT' | 'SIGTERM'>,
): Promise<Fault | undefined> {
  const progress = fileProgress(path)
  const print = options.stats ? () => {} : printer(rules, options)
  const observation = await observe(
    { kind: 'file', path },
    {
      trie,
      lanes: lanesFor('file', settings.decodeWorkers),
      dnsPorts: settings.dnsPorts,
      tlsPorts: settings.tlsPorts,
      everyName: options.names === true,
      onNames: (names) => print(names),
      onProgress: progress.update,
      cancel: stopped,
    },
  )
  stopped.then((signal) => {
    process.exitCode = exitStatusOf(signal)
    return observation.stop()
  })
  const { damage } = await observation.done
  progress.end()
  if (options.stats) printStats(path, observation.counts, options)
  else print([], true)
  return damage
}

/** Prints names as JSON lines, or on a terminal as tables of many rows. */
function printer(
  rules: readonly Rule[],
  options: ReadOptions,
): (names: readonly ObservedName[], last?: boolean) => void {
  const columns = [
    ['Time', 'time', { hide: 1 }],
    ['Client', 'client'],
    ['Method', 'method', { hide: 3 }],
    ['Name', 'name', { wrap: true }],
    ...(options.names
      ? ([['Server', 'server', { hide: 2 }]] as const)
      : ([
          ['Platform', 'platform_name'],
          ['Type', 'platform_type', { hide: 2 }],
        ] as const)),
  ] as const
  let rows: Record<string, unknown>[] = []
  return (names, last = false) => {
    for (const name of names) rows.push(rowOf(name, rules, options.names === true))
    if (rows.length === 0 || (!last && rows.length < TABLE_ROWS_MAX && process.stdout.isTTY)) return
    printRows({ columns, rows }, options)
    rows = []
  }
}

function rowOf(name: ObservedName, rules: readonly Rule[], everyName: boolean): Record<string, unknown> {
  const seen = {
    time: new Date(name.timeMs).toISOString(),
    client: name.client,
    method: name.method,
    name: name.name,
    ...(name.ech === undefined ? {} : { ech: true }),
  }
  if (everyName) return { ...seen, server: name.server, port: name.serverPort }
  const rule = rules[name.rule]
  return {
    ...seen,
    platform_name: rule?.platform.name,
    platform_type: rule?.platform.platformType,
    role: rule && withInferredRole(rule, name.name).role,
    rule: rule?.domain,
  }
}

function printStats(path: string, counts: ObserveCounts, options: ReadOptions): void {
  const { classes, counters, frames, bytes, names, matched, unmatched } = counts
  const all: Record<string, number> = { frames, bytes, names, matched, unmatched, ...counters }
  for (const [name, count] of Object.entries(classes)) all[`class ${name}`] = count
  const rows = Object.entries(all).map(([counter, count]) => ({ file: path, counter, count }))
  printRows(
    {
      columns: [
        ['Counter', 'counter'],
        ['Count', 'count'],
      ],
      rows,
    },
    options,
  )
}
