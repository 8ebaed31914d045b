import type { Command } from 'commander'
import { z } from 'zod'
import { askLocal } from '../../engine/process/ask-local.ts'
import { Fault } from '../../engine/process/error-codes.ts'
import { addSettingOptions, readSettings } from '../../engine/process/settings.ts'
import { printRows } from '../../engine/process/table.ts'
import { healthPortSetting } from '../config.ts'
import { addSettingsFileOption, environmentWith, type SettingsFileOption } from '../settings-file.ts'

const settingsOfBooks = z.object({ healthPort: healthPortSetting })

const record = z.object({
  interface: z.string(),
  uptime_seconds: z.number(),
  books: z.array(
    z.object({
      book: z.string(),
      total: z.number(),
      places: z.record(z.string(), z.number()),
      difference: z.number(),
    }),
  ),
})

/** posture-collector books: the sums of the running collector, which must balance. */
export function addBooksCommand(program: Command): void {
  const command = addSettingsFileOption(
    addSettingOptions(
      program.command('books').description('print where every packet, name and event of the running collector is'),
      settingsOfBooks,
    ),
  ).option('--json', 'one JSON object a line, as in a pipe')
  command.action(async (options: SettingsFileOption & { json?: boolean }) => {
    const { healthPort } = readSettings(settingsOfBooks, { command, environment: environmentWith(options) })
    const { books, interface: name, uptime_seconds } = await fetchBooks(healthPort)
    const rows = books.flatMap(({ book, total, places, difference }) => [
      ...Object.entries(places).map(([place, count]) => ({ book, place, count })),
      { book, place: difference === 0 ? 'total' : `total (${difference} are missing)`, count: total },
    ])
    const columns = [
      ['Book', 'book'],
      ['Place', 'place'],
      ['Count', 'count'],
    ] as const
    if (process.stdout.isTTY && !options.json) process.stdout.write(`${name}, ${uptime_seconds} s\n`)
    printRows({ columns, rows }, options)
    const wrong = books.filter(({ difference }) => difference !== 0).map(({ book }) => book)
    if (wrong.length > 0)
      throw new Fault('BOOKS_UNBALANCED', `the books of ${wrong.join(' and ')} do not balance; please report this`)
  })
}

/** @throws Fault COLLECTOR_UNREACHABLE */
async function fetchBooks(port: number): Promise<z.output<typeof record>> {
  const url = `http://127.0.0.1:${port}/books`
  try {
    const { status, text } = await askLocal(port, '/books')
    if (status === 503) throw new Fault('COLLECTOR_UNREACHABLE', `the collector at ${url} is starting; try again`)
    return record.parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault(
      'COLLECTOR_UNREACHABLE',
      `no collector answers at ${url}; start one that watches an interface, or set HEALTH_PORT to its port`,
      { cause: error },
    )
  }
}
