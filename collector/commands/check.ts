import type { Command } from 'commander'
import { Fault } from '../../engine/process/error-codes.ts'
import { jsonOption } from '../../engine/process/program.ts'
import { addSettingOptions } from '../../engine/process/settings.ts'
import { exitStatusOf, stopSignal, within } from '../../engine/process/shutdown.ts'
import { printable, printRows, printsTable } from '../../engine/process/table.ts'
import { checkSettings } from '../check/settings.ts'
import { STEPS, type StepName, type StepOutcome, type Tried } from '../check/step.ts'
import { startStep } from '../check/step-runner.ts'
import { type CollectorSettings, collectorSettings, readCollectorSettings, syslogIsOn } from '../config.ts'
import { userToBecome } from '../privileges.ts'
import { addSettingsFileOption, environmentWith, type SettingsFileOption } from '../settings-file.ts'

/** The most that lies between the moments at which two processes of a group notice the same signal. */
const SIGNAL_MS = 1000

type Row = { readonly check: string } & StepOutcome

interface CheckOptions extends SettingsFileOption {
  readonly json?: boolean
}

/** posture-collector check: tests in turn what `run` needs with the same settings, and prints a fix for each failure. */
export function addCheckCommand(program: Command): void {
  const check = jsonOption(
    addSettingsFileOption(
      addSettingOptions(
        program
          .command('check')
          .description('Test what a run with the same options needs, with a fix for every failure; forward nothing'),
        collectorSettings,
      ),
    ),
  )
  check.action(async (options: CheckOptions) => {
    const stop = stopSignal()
    const settings = readCollectorSettings(check, environmentWith(options))
    const print = printer(options)
    const rows: Row[] = []
    for (const step of ['settings', ...STEPS] as const) {
      const here = outcomeHere(step, rows, settings)
      if (here === undefined) print.busy(step)
      const outcome = here ?? (await outcomeOrSignal(step, settings, stop.received))
      if (typeof outcome === 'string') {
        process.exitCode = exitStatusOf(outcome)
        break
      }
      rows.push({ check: step, ...outcome })
      print.row(rows)
    }
    stop.forget()
    print.end(rows)
    if (process.exitCode === undefined) conclude(rows)
  })
}

async function outcomeOrSignal<S>(
  step: Tried,
  settings: CollectorSettings,
  signal: Promise<S>,
): Promise<StepOutcome | S> {
  const running = startStep(step, settings)
  // Ctrl-C reaches the step's process, too, and ends it when it has not loaded yet. This process may notice that before its own signal.
  const outcome = running.outcome.catch(async (error: unknown) => {
    if (await within(SIGNAL_MS, signal)) return signal
    throw error
  })
  return Promise.race([outcome, signal]).finally(running.stop)
}

/** What needs no process: the settings, unless root looks into a file that another user will read, and what is skipped. @throws Fault USAGE */
function outcomeHere(step: Tried, rows: readonly Row[], settings: CollectorSettings): StepOutcome | undefined {
  if (step !== 'settings') return skipped(step, rows, settings)
  const outcome = checkSettings(settings)
  const isAnothers = settings.registry !== '' && userToBecome(settings.user) !== undefined
  return outcome.result === 'ok' && isAnothers ? undefined : outcome
}

/** What is off, and what an earlier failure makes senseless: without the name there is no connection, and the token goes over a good one only. */
function skipped(step: StepName, rows: readonly Row[], settings: CollectorSettings): StepOutcome | undefined {
  const https = settings.httpsEnabled
  const syslog = syslogIsOn(settings)
  if (!https && (step === 'tls' || step === 'token')) return { result: 'skipped', found: 'HTTPS forwarding is off' }
  if (!syslog && step === 'syslog') return { result: 'skipped', found: 'syslog forwarding is off' }
  if (!https && !syslog && step === 'resolution') return { result: 'skipped', found: 'forwarding is off' }
  const needed: Partial<Record<StepName, readonly StepName[]>> = {
    tls: ['resolution'],
    token: ['resolution', 'tls'],
    syslog: ['resolution'],
  }
  const failed = rows.find(({ check, result }) => result === 'failed' && needed[step]?.includes(check as StepName))
  return failed && { result: 'skipped', found: `${failed.check} failed` }
}

/** @throws Fault of the first step that failed, so that the exit status is its own. */
function conclude(rows: readonly Row[]): void {
  const failed = rows.filter((row) => row.result === 'failed')
  const first = failed[0]
  if (first === undefined) {
    process.stderr.write('all ok\n')
    return
  }
  const names = failed.map(({ check }) => check).join(', ')
  throw new Fault(first.code, `${failed.length} of ${rows.length} checks failed: ${names}`)
}

/** In a pipe, prints each row as soon as it is known. On a terminal, prints one table, and the fixes below it for copying. */
function printer(options: CheckOptions) {
  const lines = !printsTable(options)
  const columns = [
    ['Check', 'check'],
    ['Result', 'result'],
    ['Found', 'found', { wrap: true }],
  ] as const
  const status = (text: string): void => {
    if (!lines && process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
  }
  return {
    busy: (step: Tried) => status(`${step}…`),
    row(rows: readonly Row[]) {
      if (lines) printRows({ columns, rows: rows.slice(-1) }, options)
    },
    end(rows: readonly Row[]) {
      status('')
      if (lines) return
      printRows({ columns, rows }, options)
      for (const row of rows) {
        if (row.result === 'failed' && row.remedy !== '')
          process.stdout.write(`${row.check}: ${printable(row.remedy)}\n`)
      }
    },
  }
}
