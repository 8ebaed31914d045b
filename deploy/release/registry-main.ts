import { createPrivateKey, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Fault } from '../../engine/process/error-codes.ts'
import { createProgram, runProgram } from '../../engine/process/program.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { REPOSITORY } from './bundle.ts'
import { moveFile, packFolder, releaseOfClone, workFolder, writeChecksum } from './files.ts'
import { registryPackage } from './registry-package.ts'

/*
 * npm run registry:package: posture-registry-VERSION.tar.gz with its SHA-256. Two runs on the same
 * commit with the same key produce the same bytes: Ed25519 signatures are deterministic.
 */

// Makes the modes of files independent of the user.
process.umask(0o022)
const program = createProgram('npm run registry:package --', 'Build the registry as a data package')
  .option('--key <file>', 'Sign with this Ed25519 private key (PEM)')
  .option('--out <folder>', 'Write files to this folder', 'release')
program.action(async ({ key, out }: { key?: string; out: string }) => {
  const release = await releaseOfClone()
  const files = registryPackage(loadCatalog(), release, key === undefined ? undefined : signingKey(key))
  const folder = resolve(REPOSITORY, out)
  mkdirSync(folder, { recursive: true })
  const name = `posture-registry-${release.version}`
  const archive = join(folder, `${name}.tar.gz`)
  const work = join(await workFolder(archive), name)
  for (const [file, content] of files) {
    mkdirSync(dirname(join(work, file)), { recursive: true })
    writeFileSync(join(work, file), content)
  }
  await packFolder(work, `${work}.tar.gz`, release)
  await moveFile(`${work}.tar.gz`, archive)
  await writeChecksum(archive)
  process.stdout.write(`${archive}\n`)
})
await runProgram(program)

function signingKey(file: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(readFileSync(file))
  } catch (error) {
    throw new Fault('USAGE', `--key ${file}: cannot be read as a private key (PEM)`, { cause: error })
  }
  if (key.asymmetricKeyType === 'ed25519') return key
  throw new Fault('USAGE', `--key ${file}: expected an Ed25519 key, found ${key.asymmetricKeyType}`)
}
