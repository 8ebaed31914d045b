import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { captureCases, freshVerdict, storedVerdict } from './verdicts.ts'

/** The stored verdicts, with which test/collector/captures.test.ts compares our decoder, are what tshark says today. */

// Two programs at a time.
t.jobs = 2
for (const capture of captureCases()) {
  if (capture.expected.tshark === false) {
    t.test(`${capture.name}: the README says what tshark reads otherwise`, async (t) => {
      t.match(readFileSync(join(dirname(capture.file), 'README.md'), 'utf8'), /tshark/)
    })
  } else {
    t.test(`${capture.name}: tshark shows the same names as when it was asked last`, async (t) => {
      t.same(await freshVerdict(capture), storedVerdict(capture))
    })
  }
}
