import type { Command } from 'commander'
import { z } from 'zod'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { assertExpected } from '../../engine/kernel/process/failure.ts'
import { askLocal } from '../../engine/kernel/process/local-server.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import {
  addSettingOptions,
  addSettingsFileOption,
  environmentWith,
  readSettings,
  type SettingsFileOption,
} from '../../engine/kernel/process/settings.ts'
import { printRows, printsTable } from '../../engine/kernel/process/table.ts'
import { collectorSettings, healthPortSetting } from '../config.ts'
import { jsonOf } from '../forward/https-client.ts'

const countersSettings = z.object({ healthPort: healthPortSetting })

const record = z.object({
  interface: z.string(),
  uptime_seconds: z.number(),
  counters: z.array(
    z.object({
      counter: z.string(),
      total: z.number(),
      outcomes: z.record(z.string(), z.number()),
      difference: z.number(),
    }),
  ),
})

/**
 * posture-collector counters: the counters of the running collector and their outcomes, which must
 * add up.
 */
export function addCountersCommand(program: Command): void {
  const command = jsonOption(
    addSettingsFileOption(
      addSettingOptions(
        program
          .command('counters')
          .description('Show how many packets, names and events of the running collector had each outcome'),
        countersSettings,
      ),
    ),
  )
  command.action(async (options: SettingsFileOption & { json?: boolean }) => {
    const { healthPort } = readSettings(countersSettings, {
      command,
      environment: environmentWith(options, collectorSettings),
    })
    const { counters, interface: name, uptime_seconds } = await fetchCounters(healthPort)
    const rows = counters.flatMap(({ counter, total, outcomes, difference }) => [
      ...Object.entries(outcomes).map(([outcome, count]) => ({ counter, outcome, count })),
      { counter, outcome: difference === 0 ? 'total' : `total (${difference} missing)`, count: total },
    ])
    const columns = [
      ['Counter', 'counter'],
      ['Outcome', 'outcome', { wrap: true }],
      ['Count', 'count'],
    ] as const
    if (printsTable(options)) process.stdout.write(`${name}, ${uptime_seconds} s\n`)
    printRows({ columns, rows }, options)
    const wrong = counters.filter(({ difference }) => difference !== 0).map(({ counter }) => counter)
    if (wrong.length > 0) {
      throw new Fault(
        'COUNTERS_UNBALANCED',
        `the outcomes of ${wrong.join(' and ')} do not add up to the total; please report this`,
      )
    }
  })
}

/** @throws Fault COLLECTOR_UNREACHABLE */
async function fetchCounters(port: number): Promise<z.output<typeof record>> {
  const url = `http://127.0.0.1:${port}/counters`
  const { status, text } = await askLocal(port, '/counters').catch((error: unknown) => {
    assertExpected(error)
    const fix = 'start one that captures on an interface, or set HEALTH_PORT to its port'
    throw new Fault('COLLECTOR_UNREACHABLE', `no collector answers at ${url}; ${fix}`, { cause: error })
  })
  if (status === 503) throw new Fault('COLLECTOR_UNREACHABLE', `the collector at ${url} is starting; try again`)
  const parsed = record.safeParse(jsonOf(text))
  if (parsed.success) return parsed.data
  const wrong = `the answer (status ${status}) is not from a posture-collector of this release`
  throw new Fault('COLLECTOR_UNREACHABLE', `${url}: ${wrong}; set HEALTH_PORT to the port of one`)
}
