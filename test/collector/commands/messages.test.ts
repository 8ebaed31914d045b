import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { collectorProgram } from '../../../collector/program.ts'
import { failureOf } from '../../../engine/kernel/process/program.ts'
import { skipUnlessRoot } from '../../support/other-user.ts'

/** FILES is a directory. */
const ROWS: readonly { readonly words: string; readonly error: RegExp; readonly status?: number }[] = [
  { words: '--shift-to-now', error: /USAGE --shift-to-now: requires --read <file>$/m },
  { words: '--settings-file FILES/none.env', error: /USAGE --settings-file \S+none\.env: no such file or directory$/m },
  {
    words: 'read FILES/typo.env',
    error: /CAPTURE_FORMAT \S+typo\.env: not a pcap or pcapng capture file$/m,
    status: 4,
  },
  // Only root becomes another user. The error names the variable that the user has set.
  ...(skipUnlessRoot ? [] : [{ words: '--settings-file FILES/user.env', error: /USAGE RUN_AS: no user "alice"/ }]),
  ...['run', 'check', 'counters', 'outbox stats'].map((command) => ({
    words: `${command} --settings-file FILES/typo.env`,
    error: /USAGE \S+typo\.env:2: unknown setting INTERFASE\. Did you mean INTERFACE\?$/m,
  })),
]

t.test('messages say what was wrong, where, and what to do', async (t) => {
  const directory = t.testdir()
  writeFileSync(join(directory, 'user.env'), 'RUN_AS=alice\n')
  writeFileSync(join(directory, 'typo.env'), 'LOG_LEVEL=INFO\nINTERFASE=eth1\n')
  for (const { words, error, status = 2 } of ROWS) {
    const program = collectorProgram()
    const failure = await program
      .parseAsync(words.replaceAll('FILES', directory).split(' '), { from: 'user' })
      .then(() => undefined)
      .catch((error: unknown) => failureOf(program.name(), error))
    t.equal(failure?.status, status, words)
    t.match(failure?.text, error, words)
  }
})
