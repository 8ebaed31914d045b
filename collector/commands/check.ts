import type { Command } from 'commander'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import {
  addSettingOptions,
  addSettingsFileOption,
  environmentWith,
  type SettingsFileOption,
} from '../../engine/kernel/process/settings.ts'
import { exitStatusOf, stopSignal, within } from '../../engine/kernel/process/signals.ts'
import { printable, printRows, printsTable } from '../../engine/kernel/process/table.ts'
import { checkSettings } from '../check/settings.ts'
import { type CheckName, STEPS, type StepName, type StepOutcome } from '../check/step.ts'
import { startStep } from '../check/step-runner.ts'
import { type CollectorSettings, collectorSettings, readCollectorSettings, syslogIsOn } from '../config.ts'
import { userToBecome } from '../privileges.ts'

/** Maximum delay between two processes of a group noticing the same signal. */
const SIGNAL_MS = 1000

type Row = { readonly check: string } & StepOutcome

interface CheckOptions extends SettingsFileOption {
  readonly json?: boolean
}

/**
 * posture-collector check: tests in turn what `run` needs with the same settings, and prints a fix
 * for each failure.
 */
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
    const settings = readCollectorSettings(check, environmentWith(options, collectorSettings))
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
  step: CheckName,
  settings: CollectorSettings,
  signal: Promise<S>,
): Promise<StepOutcome | S> {
  const running = startStep(step, settings)
  // Ctrl-C also reaches the step's process, and kills it if it is still loading. This process may
  // notice that before its own signal.
  const outcome = running.outcome.catch(async (error: unknown) => {
    if (await within(SIGNAL_MS, signal)) return signal
    throw error
  })
  return Promise.race([outcome, signal]).finally(running.stop)
}

/**
 * Handles what needs no process: skipped steps, and the settings unless root must check a file as
 * another user. @throws Fault USAGE
 */
function outcomeHere(step: CheckName, rows: readonly Row[], settings: CollectorSettings): StepOutcome | undefined {
  if (step !== 'settings') return skipped(step, rows, settings)
  const outcome = checkSettings(settings)
  const isAnothers = settings.registry !== '' && userToBecome(settings) !== undefined
  return outcome.result === 'ok' && isAnothers ? undefined : outcome
}

/**
 * Skips steps that are disabled or pointless after an earlier failure: without a resolved name
 * there is no connection, and the token is sent only over a verified connection.
 */
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

/** @throws Fault of the first failed step, so that the exit status is that of the Fault. */
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

/**
 * In a pipe, prints each row as soon as it is known. On a terminal, prints one table, followed by
 * the fixes for copying.
 */
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
    busy: (step: CheckName) => status(`${step}…`),
    row(rows: readonly Row[]) {
      if (lines) printRows({ columns, rows: rows.slice(-1) }, options)
    },
    end(rows: readonly Row[]) {
      status('')
      if (lines) return
      printRows({ columns, rows }, options)
      for (const row of rows) {
        if (row.result === 'failed' && row.fix !== '') process.stdout.write(`${row.check}: ${printable(row.fix)}\n`)
      }
    },
  }
}
