import { appendFileSync, closeSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { openCapture } from '../../../collector/capture/capture-file.ts'
import { identityOf as identityOfOpen } from '../../../collector/watch.ts'

const bytes = (count: number, seed = 0): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, at) => (at * 7 + seed) & 255))

function identityOf(path: string, known: readonly string[]): string {
  const descriptor = openCapture(path) as number
  try {
    return identityOfOpen(descriptor, known)
  } finally {
    closeSync(descriptor)
  }
}

t.test('a file is recognized after a rename and after growing, and distinguished from other files', async (t) => {
  const directory = t.testdir()
  const [file, other] = [`${directory}/a`, `${directory}/b`]
  writeFileSync(file, bytes(1000))
  const identity = identityOf(file, [])
  t.match(identity, /^1000 [0-9a-f]{64}$/)
  writeFileSync(other, bytes(1000))
  t.equal(identityOf(other, [identity]), identity, 'a copy')
  appendFileSync(file, bytes(500))
  t.equal(identityOf(file, [identity]), identity, 'grown')
  t.match(identityOf(file, []), /^1500 /)
  writeFileSync(other, bytes(1500, 3))
  t.match(identityOf(other, [identity]), /^1500 /, 'another')
  writeFileSync(other, bytes(999))
  t.match(identityOf(other, [identity]), /^999 /, 'a part of the file is another file')
})

t.test('a file that is too short to identify is recognized only if it is unchanged', async (t) => {
  const file = `${t.testdir()}/a`
  writeFileSync(file, bytes(24))
  const identity = identityOf(file, [])
  t.equal(identityOf(file, [identity]), identity)
  appendFileSync(file, bytes(500))
  t.match(identityOf(file, [identity]), /^524 /)
})

t.test('a file of more than 64 KiB is recognized after any growth', async (t) => {
  const file = `${t.testdir()}/a`
  writeFileSync(file, bytes(70_000))
  const identity = identityOf(file, [])
  t.match(identity, /^65536 /)
  appendFileSync(file, bytes(70_000))
  t.equal(identityOf(file, [identity]), identity)
  t.equal(openCapture('/nowhere'), undefined, 'the thread reports it')
})
