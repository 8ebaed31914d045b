import { availableParallelism } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { SingleBar } from 'cli-progress'
import { fuzzBodies } from './bodies.ts'
import { fuzzCoverage } from './coverage.ts'
import { fuzzFiles } from './files.ts'
import { fuzzLines } from './lines.ts'
import { fuzzMessages } from './messages.ts'
import { fuzzPackets } from './packets.ts'

/**
 * npm run fuzz: mutated packets, log lines, capture files, syslog messages, coverage reports and
 * bodies, on all cores. FUZZ_MUTATIONS is the number of packets; there are half as many lines, a
 * tenth as many messages and bodies, and a hundredth as many files and reports. FUZZ_SEED repeats a run. Each seed covers STEP
 * packets, so that repeating a failure takes seconds: FUZZ_SEED=<seed> FUZZ_MUTATIONS=<STEP>.
 */
const STEP = 250_000
const MUTATIONS = Number(process.env['FUZZ_MUTATIONS'] ?? 100_000_000)
/** An input that needs more ends its worker with ERR_WORKER_OUT_OF_MEMORY. */
const RESOURCES = { maxOldGenerationSizeMb: 256 }
const SEED = Number(process.env['FUZZ_SEED'] ?? Math.floor(Date.now() / 1000))

if (isMainThread) {
  const cores = availableParallelism()
  const steps = Math.max(1, Math.ceil(MUTATIONS / STEP))
  process.stdout.write(`fuzz: ${MUTATIONS} packets, seeds ${SEED} to ${SEED + steps - 1}, ${cores} threads\n`)
  const bar = new SingleBar({
    format: 'fuzz {bar} {percentage}% {value} packets',
    noTTYOutput: false,
    hideCursor: true,
  })
  if (process.stderr.isTTY) bar.start(MUTATIONS, 0)
  const startMs = performance.now()
  let done = 0
  const workers = Array.from({ length: cores }, (_core, core) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { core, cores, steps },
      resourceLimits: RESOURCES,
    })
    worker.on('message', (packets: number) => {
      done += packets
      if (process.stderr.isTTY) bar.update(done)
    })
    return new Promise<void>((resolve, reject) => {
      worker.once('error', reject)
      worker.once('exit', () => resolve())
    })
  })
  try {
    await Promise.all(workers)
  } catch (error) {
    bar.stop()
    process.stderr.write(`${(error as Error).message}\n`)
    process.exit(1)
  }
  bar.stop()
  const seconds = (performance.now() - startMs) / 1000
  process.stdout.write(`fuzz: ${done} packets, nothing found; ${Math.round(done / seconds)} packets/s\n`)
} else {
  const { core, cores, steps } = workerData as { core: number; cores: number; steps: number }
  for (let step = core; step < steps; step += cores) {
    const packets = Math.min(STEP, MUTATIONS - step * STEP)
    fuzzPackets(SEED + step, packets)
    fuzzLines(SEED + step, Math.ceil(packets / 2))
    await fuzzFiles(SEED + step, Math.ceil(packets / 100))
    fuzzMessages(SEED + step, Math.ceil(packets / 10))
    fuzzCoverage(SEED + step, Math.ceil(packets / 100))
    await fuzzBodies(SEED + step, Math.ceil(packets / 10))
    parentPort?.postMessage(packets)
  }
}
