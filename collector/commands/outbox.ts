import { once } from 'node:events'
import type { Command } from 'commander'
import { z } from 'zod'
import { type Event, eventToJson } from '../../engine/kernel/event/event.ts'
import { becomeOwner } from '../../engine/kernel/process/become-user.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import {
  addSettingOptions,
  addSettingsFileOption,
  environmentWith,
  readSettings,
  type SettingsFileOption,
  wholeNumber,
} from '../../engine/kernel/process/settings.ts'
import { printRows } from '../../engine/kernel/process/table.ts'
import { collectorSettings, outboxSetting } from '../config.ts'
import type { OutboxReader } from '../outbox/outbox-reader.ts'
import { OUTBOX_IN_MEMORY } from '../outbox/outbox-store.ts'

const settingsOfOutbox = z.object({ outbox: outboxSetting })
const PEEK_EVENTS = 10
const PEEK_EVENTS_MAX = 10_000
/** Lines per write to the pipe. */
const EXPORT_LINES = 1000

interface Printing extends SettingsFileOption {
  readonly json?: boolean
}

/**
 * posture-collector outbox: shows the events that wait to be forwarded, with or without a running
 * collector. Changes nothing.
 */
export function addOutboxCommand(program: Command): void {
  const outbox = program
    .command('outbox')
    .description('Inspect events that wait to be forwarded, without changing them')
  addStats(outbox)
  addPeek(outbox)
  addExport(outbox)
}

function addStats(outbox: Command): void {
  const command = addOutboxOptions(outbox.command('stats').description('Show how many events wait, and since when'))
  jsonOption(command).action((options: Printing) =>
    withOutbox(command, options, (reader) => {
      const { waiting, footprintBytes, firstSequence, lastSequence, oldestWrittenMs } = reader.figures
      const row = {
        waiting,
        bytes: footprintBytes,
        oldest: timeOf(oldestWrittenMs),
        instance: reader.instance || null,
        first_sequence: firstSequence,
        last_sequence: lastSequence,
      }
      const columns = [
        ['Waiting events', 'waiting'],
        ['Bytes', 'bytes'],
        ['Oldest event', 'oldest'],
        ['Instance', 'instance'],
        ['First sequence', 'first_sequence'],
        ['Last sequence', 'last_sequence'],
      ] as const
      printRows({ columns, rows: [row] }, options)
    }),
  )
}

function addPeek(outbox: Command): void {
  const command = addOutboxOptions(outbox.command('peek').description('Show the oldest waiting events')).option(
    '-n, --count <events>',
    'Show this many',
    String(PEEK_EVENTS),
  )
  jsonOption(command)
  command.action((options: Printing & { readonly count: string }) => {
    const count = wholeNumber(1, PEEK_EVENTS_MAX).safeParse(options.count)
    if (!count.success) throw new Fault('USAGE', `--count: expected a whole number from 1 to ${PEEK_EVENTS_MAX}`)
    return withOutbox(command, options, (reader) => {
      const columns = [
        ['Last seen', 'last_seen', { hide: 2 }],
        ['Client', 'client'],
        ['Method', 'method', { hide: 1 }],
        ['Name', 'name', { wrap: true }],
        ['Count', 'count'],
        ['Id', 'id', { hide: 3 }],
      ] as const
      printRows({ columns, rows: [...reader.events(count.data)].map(eventToJson) }, options)
    })
  })
}

function addExport(outbox: Command): void {
  const command = addOutboxOptions(
    outbox.command('export').description('Print all waiting events, one JSON object per line, oldest first'),
  )
  command.action((options: SettingsFileOption) =>
    withOutbox(command, options, async (reader) => {
      let lines: string[] = []
      const write = async (): Promise<void> => {
        if (!process.stdout.write(lines.join(''))) await once(process.stdout, 'drain')
        lines = []
      }
      for (const event of reader.events()) {
        lines.push(lineOf(event))
        if (lines.length === EXPORT_LINES) await write()
      }
      await write()
    }),
  )
}

function addOutboxOptions(command: Command): Command {
  return addSettingsFileOption(addSettingOptions(command, settingsOfOutbox))
}

function lineOf(event: Event): string {
  return `${JSON.stringify(eventToJson(event))}\n`
}

/** @throws Fault USAGE, NOT_FOUND, STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED. */
async function withOutbox(
  command: Command,
  options: SettingsFileOption,
  poll: (reader: OutboxReader) => void | Promise<void>,
): Promise<void> {
  const { outbox } = readSettings(settingsOfOutbox, {
    command,
    environment: environmentWith(options, collectorSettings),
  })
  if (outbox === OUTBOX_IN_MEMORY)
    throw new Fault('USAGE', '--outbox memory: events in the memory of a collector cannot be inspected; see /metrics')
  // Imported here because LMDB takes longer to load than everything else.
  const { OutboxReader } = await import('../outbox/outbox-reader.ts')
  becomeOwner('--outbox', outbox)
  const reader = new OutboxReader(outbox)
  try {
    await poll(reader)
  } finally {
    await reader.close()
  }
}

function timeOf(ms: number): string | null {
  return ms === 0 ? null : new Date(ms).toISOString()
}
