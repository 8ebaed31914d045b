import { exclusively } from '../../engine/process/exclusive.ts'

/** A process that does exclusive work in the directory that it is given, until it is killed. */
await exclusively(process.argv[2] ?? '', 'reading', async () => {
  process.send?.('at work')
  await new Promise((resolve) => setInterval(resolve, 1_000_000))
})
