import t from 'tap'
import { fuzzBodies } from './bodies.ts'
import { fuzzCoverage } from './coverage.ts'
import { fuzzFiles } from './files.ts'
import { fuzzLines } from './lines.ts'
import { fuzzMessages } from './messages.ts'
import { fuzzPackets } from './packets.ts'

/** A small version of `npm run fuzz`. The seed changes daily; the tests' titles contain it. */
const SEED = Number(process.env['FUZZ_SEED'] ?? Math.floor(Date.now() / 86_400_000))

t.test(`mutated packets are decoded safely, seed ${SEED}`, async (t) => {
  fuzzPackets(SEED, 150_000)
  t.pass()
})

t.test(`mutated capture files are read safely, seed ${SEED}`, async (t) => {
  await fuzzFiles(SEED, 3_000)
  t.pass()
})

t.test(`mutated syslog messages are read safely, seed ${SEED}`, async (t) => {
  fuzzMessages(SEED, 30_000)
  t.pass()
})

t.test(`mutated log lines are read safely, seed ${SEED}`, async (t) => {
  fuzzLines(SEED, 100_000)
  t.pass()
})

t.test(`mutated coverage reports are parsed safely, seed ${SEED}`, async (t) => {
  fuzzCoverage(SEED, 10_000)
  t.pass()
})

t.test(`mutated bodies are decoded safely, seed ${SEED}`, async (t) => {
  await fuzzBodies(SEED, 20_000)
  t.pass()
})
