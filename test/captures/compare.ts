import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { observe } from '../../collector/pipeline/observe.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { type ShownName, shownByTshark } from './tshark.ts'

/**
 * Compares the collector's names with tshark's for every capture file in a folder, in both
 * directions: npm run compare -- FOLDER. Prints the files with differences, and the names that only
 * one side found. differences.tsv explains the known ones.
 *
 * tshark reads each file by its defaults, and with reassembly of segments out of order. What either
 * reading shows is expected, as often as the reading that shows it more often.
 */
const trie = compileTrie(loadCatalog().rules)
const CAPTURE = /\.(pcap|pcapng|cap|dmp)(\.gz|\.zst)?$/
const SHOWN_MAX = 5
/** Rows of: end of the file's path, names that only tshark shows, names that only the collector shows, reason. */
const KNOWN = readFileSync(new URL('../../../test/captures/differences.tsv', import.meta.url), 'utf8')
  .split('\n')
  .map((line) => line.split('\t'))

async function main(folder: string): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => CAPTURE.test(path) && statSync(path).isFile())
    .sort()
  const sum = { files: files.length, differ: 0, explained: 0, names: 0, missed: 0, extra: 0 }
  for (const file of files) {
    const [ours, byDefault, waiting] = await Promise.all([
      namesOf(file),
      shownByTshark(file, true, false).then(linesOf),
      shownByTshark(file, true).then(linesOf),
    ])
    const expected = [...byDefault, ...namesMissingFrom(waiting, byDefault)]
    const missed = namesMissingFrom(expected, ours)
    const extra = namesMissingFrom(ours, expected)
    sum.names += expected.length
    sum.missed += missed.length
    sum.extra += extra.length
    if (missed.length + extra.length === 0) continue
    const figures = [`${missed.length}`, `${extra.length}`]
    if (KNOWN.some(([end = '', ...known]) => file.endsWith(`/${end}`) && figures.every((n, at) => n === known[at]))) {
      sum.explained++
      continue
    }
    sum.differ++
    process.stdout.write(`${relative(folder, file)}\n`)
    for (const name of missed.slice(0, SHOWN_MAX)) process.stdout.write(`  only tshark:    ${name}\n`)
    for (const name of extra.slice(0, SHOWN_MAX)) process.stdout.write(`  only collector: ${name}\n`)
  }
  process.stdout.write(`${JSON.stringify(sum)}\n`)
}

async function namesOf(path: string): Promise<string[]> {
  const found: string[] = []
  try {
    const observation = await observe(
      { kind: 'file', path },
      {
        trie,
        lanes: 1,
        everyName: true,
        onNames: (names) => {
          for (const { client, name } of names) found.push(lineOf(client, name))
        },
      },
    )
    await observation.done
  } catch (error) {
    process.stdout.write(`${(error as Error).message}\n`)
  }
  return found
}

function linesOf(shown: readonly ShownName[]): string[] {
  return shown.map(({ client, name }) => lineOf(client, name))
}

/** The collector and tshark print unprintable bytes differently. Both forms become `?`. */
function lineOf(client: string, name: string): string {
  return `${client} ${name.replace(/\\\d{3}|\\.|[^\u0021-\u007e]+/g, '?')}`.replace(/\?+/g, '?')
}

function namesMissingFrom(all: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1)
  return all.filter((line) => {
    const count = counts.get(line) ?? 0
    counts.set(line, count - 1)
    return count <= 0
  })
}

const folder = process.argv[2]
if (folder === undefined) {
  process.stderr.write(
    "usage: npm run compare -- FOLDER. Compares the collector's names with tshark's in every capture file in FOLDER\n",
  )
  process.exitCode = 2
} else await main(folder)
