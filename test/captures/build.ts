import { mkdirSync, writeFileSync } from 'node:fs'
import { madeCaptures } from './cases.ts'
import { captureBytes, expectationOf } from './made-capture.ts'

/** Writes test/captures/<case>/ for every capture that is made: node dist/test/captures/build.js, in the project's folder. */
for (const [name, capture] of Object.entries(madeCaptures())) {
  const folder = `test/captures/${name}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/input.pcap`, captureBytes(capture))
  writeFileSync(`${folder}/expect.json`, `${JSON.stringify(expectationOf(capture), undefined, 1)}\n`)
  writeFileSync(
    `${folder}/README.md`,
    `# ${name}\n\n${capture.about}\nMade by test/captures/build.ts; expect.json says what the builder put in, not what the decoder found.\n`,
  )
}
