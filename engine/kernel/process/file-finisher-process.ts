import { renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { syncDirectory } from './directory.ts'

/** See new-file.ts. In a release, other arguments are before these. */
const [partPath = '', path = ''] = process.argv.slice(-2)
let current = partPath
let isComplete = false

/** Returns '' or the code of a system error. */
function complete(): string {
  try {
    renameSync(current, path)
    current = path
    syncDirectory(dirname(path))
    return ''
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code ?? message
  }
}

async function followOrders(): Promise<void> {
  // The parent may have been killed.
  process.stdout.on('error', () => {})
  for await (const order of createInterface({ input: process.stdin })) {
    const answer = order === 'complete' ? complete() : undefined
    isComplete = answer === ''
    if (answer !== undefined) process.stdout.write(`${answer}\n`)
  }
  if (!isComplete) rmSync(current, { force: true })
}

await followOrders()
