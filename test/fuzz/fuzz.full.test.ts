import t from 'tap'
import { fuzzCoverage } from './coverage.ts'
import { fuzzFiles } from './files.ts'
import { fuzzMessages } from './messages.ts'
import { fuzzPackets } from './packets.ts'

/** A bounded part of `npm run fuzz`, with a seed of the day so that every day tries others; a failure names it. */
const SEED = Number(process.env['FUZZ_SEED'] ?? Math.floor(Date.now() / 86_400_000))

t.test(`changed packets, seed ${SEED}`, async (t) => {
  fuzzPackets(SEED, 150_000)
  t.pass()
})

t.test(`changed capture files, seed ${SEED}`, async (t) => {
  await fuzzFiles(SEED, 3_000)
  t.pass()
})

t.test(`changed syslog messages, seed ${SEED}`, async (t) => {
  fuzzMessages(SEED, 30_000)
  t.pass()
})

t.test(`changed reports of coverage, seed ${SEED}`, async (t) => {
  fuzzCoverage(SEED, 10_000)
  t.pass()
})
