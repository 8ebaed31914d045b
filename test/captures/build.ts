import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { madeCaptures } from './cases.ts'
import { compressed, uncompressed } from './compressed.ts'
import { golden } from './golden.ts'
import { captureBytes, captureFile, expectationOf, type MadeCapture } from './made-capture.ts'
import { captureCases, storeVerdict } from './verdicts.ts'

/** Writes test/captures/<case>/ for every capture that is made: node dist/test/captures/build.js, in the project's folder. */
for (const [name, capture] of Object.entries(madeCaptures())) {
  const folder = `test/captures/${name}`
  mkdirSync(folder, { recursive: true })
  const file = `${folder}/${captureFile(capture)}`
  const bytes = captureBytes(capture)
  // Another version of a compressor writes other bytes of the same content: a file that still holds it stays as it is.
  if (!existsSync(file) || !uncompressed(file).equals(bytes)) writeFileSync(file, compressed(file, bytes))
  writeFileSync(`${folder}/expect.json`, `${JSON.stringify(expectationOf(capture), undefined, 1)}\n`)
  writeFileSync(`${folder}/README.md`, readme(name, capture))
}

/** What tshark shows of all captures, made here or not. */
for (const capture of captureCases()) {
  if (capture.expected.tshark !== false) await storeVerdict(capture)
}

/** And what ships with the collector for its self-test. */
const { cases, capture: goldenCapture } = golden()
writeFileSync('collector/selftest/golden.pcap', goldenCapture)
writeFileSync('collector/selftest/golden.json', `${JSON.stringify(cases, undefined, 1)}\n`)

function readme(name: string, { about, tsharkDiffers }: MadeCapture): string {
  const differs = tsharkDiffers === undefined ? '' : `tshark shows other names: ${tsharkDiffers}\n`
  const made = 'Made by test/captures/build.ts; expect.json says what the builder put in, not what the decoder found.\n'
  return `# ${name}\n\n${about}${differs === '' ? '' : `\n${differs}`}\n${made}`
}
