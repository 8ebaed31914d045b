import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../../engine/kernel/process/program.ts'
import { dataReleases } from '../../registry/build.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { REPOSITORY } from './bundle.ts'
import { moveFile, packFolder, releaseOfClone, workFolder, writeChecksum } from './files.ts'
import { DATA_FILE, registryPackage } from './registry-package.ts'
import { privateKeyIn, type SignedKey, signedKey, updateFile } from './registry-signing.ts'

/*
 * npm run registry:package: posture-registry-VERSION.tar.gz and, with a signed key,
 * posture-registry-VERSION.update, each with its SHA-256. Two runs on the same commit with the same
 * key produce the same bytes: Ed25519 signatures are deterministic.
 */
interface Options {
  readonly key?: string
  readonly signedKey?: string
  readonly validDays: string
  readonly out: string
}

// Makes the modes of files independent of the user.
process.umask(0o022)
const program = createProgram('npm run registry:package --', 'Build the registry as a data package')
  .option('--key <file>', 'Sign with this Ed25519 private key (PEM)')
  .option('--signed-key <file>', 'Write an update file also; this file of registry:key proves the key')
  .option('--valid-days <days>', 'Let programs warn when the release is older than this', '180')
  .option('--out <folder>', 'Write files to this folder', 'release')
program.action(async ({ key: keyFile, signedKey: signedKeyFile, validDays, out }: Options) => {
  if (!/^[1-9]\d{0,3}$/.test(validDays)) throw new Fault('USAGE', `--valid-days ${validDays}: expected 1 to 9999`)
  if (signedKeyFile !== undefined && keyFile === undefined) throw new Fault('USAGE', '--signed-key requires --key')
  const releases = dataReleases()
  const release = { ...(await releaseOfClone()), version: releases[0].version }
  const key = keyFile === undefined ? undefined : privateKeyIn('--key', keyFile)
  const files = registryPackage(loadCatalog(), release, { key, releases })
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
  if (key === undefined || signedKeyFile === undefined) return
  const update = join(folder, `${name}.update`)
  const content = updateFile(
    String(files.get(DATA_FILE)),
    release.version,
    key,
    signedKeyIn(signedKeyFile),
    Number(validDays),
  )
  writeFileSync(`${work}.update`, content)
  await moveFile(`${work}.update`, update)
  await writeChecksum(update)
  process.stdout.write(`${update}\n`)
})
await runProgram(program)

function signedKeyIn(file: string): SignedKey {
  try {
    return signedKey.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new Fault('USAGE', `--signed-key ${file}: expected a file that npm run registry:key has written`, {
      cause: error,
    })
  }
}
