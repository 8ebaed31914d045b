import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { captureCases, freshVerdict, storedVerdict } from './verdicts.ts'

/**
 * test/collector/captures.test.ts compares our decoder with stored tshark verdicts. This test
 * compares those with the installed tshark.
 */

// Two processes at a time.
t.jobs = 2
for (const capture of captureCases()) {
  if (capture.expected.tshark === false) {
    t.test(`${capture.name}: the README explains how tshark differs`, async (t) => {
      t.match(readFileSync(join(dirname(capture.file), 'README.md'), 'utf8'), /tshark/)
    })
  } else {
    t.test(`${capture.name}: the installed tshark shows the stored names`, async (t) => {
      t.same(await freshVerdict(capture), storedVerdict(capture))
    })
  }
}
