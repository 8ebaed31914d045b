import { writeFileSync } from 'node:fs'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../../engine/kernel/process/program.ts'
import { releaseKey } from '../../registry/signed-release.ts'
import { privateKeyIn, publicKeyIn, publicKeyText, signReleaseKey } from './registry-signing.ts'

/*
 * npm run registry:key: signs a release key with the root key. The only program that reads the root
 * key (CONTRIBUTING.md).
 */
interface Options {
  readonly root: string
  readonly key: string
  readonly number: string
  readonly until: string
  readonly out: string
}

const program = createProgram('npm run registry:key --', 'Sign a release key with the root key')
  .requiredOption('--root <file>', 'Sign with this Ed25519 private key (PEM)')
  .requiredOption('--key <file>', 'Sign this Ed25519 public key (PEM)')
  .requiredOption('--number <number>', 'Number the key, one higher than the key that it replaces')
  .requiredOption('--until <day>', 'Let the key sign versions until this day, such as 2027-12-31')
  .requiredOption('--out <file>', 'Write the signed key to this file')
program.action(({ root, key, number, until, out }: Options) => {
  const publicKey = publicKeyIn('--key', key)
  const given = releaseKey.safeParse({ number: Number(number), until, public_key: publicKeyText(publicKey) })
  if (!given.success) {
    const [issue] = given.error.issues
    throw new Fault('USAGE', `--${issue?.path.join('.')}: ${issue?.message}`)
  }
  const signed = signReleaseKey(privateKeyIn('--root', root), publicKey, given.data.number, until)
  writeFileSync(out, `${JSON.stringify(signed, null, 2)}\n`)
  process.stdout.write(`${out}\n`)
})
await runProgram(program)
