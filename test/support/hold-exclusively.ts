import { exclusively } from '../../engine/kernel/process/exclusive.ts'

/** Runs as a separate process: does exclusive work in the given directory until it is killed. */
await exclusively(process.argv[2] ?? '', 'reading', async () => {
  process.send?.('at work')
  await new Promise((resolve) => setInterval(resolve, 1_000_000))
})
