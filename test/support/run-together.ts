import process from 'node:process'

/**
 * Runs several test files in one process, so that what they all load (tap, zod, LMDB, the
 * registry) is loaded once.
 */
const [, ...files] = process.argv.splice(1)
// tap names folders of fixtures by the arguments, and a file name has at most 255 bytes.
process.argv.push(...files.slice(0, 1))
const { default: t } = await import('tap')
// As a test, because tap ends when a file has no test left and the next one is still loading.
void t.test('the files load', async () => {
  for (const file of files) await import(file)
})
