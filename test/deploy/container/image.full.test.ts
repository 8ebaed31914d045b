import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { buildImage } from '../../support/image.ts'
import { skipNamespaces } from '../../support/namespace.ts'
import { CONTAINER_FILES } from '../../support/programs.ts'
import { released, THIS_MACHINE, VERSION } from '../../support/released.ts'

t.test('the tests’ image builder rejects unsupported instructions', async (t) => {
  const refused: readonly (readonly [string, RegExp])[] = [
    ['FROM alpine', /no such image/],
    ['USER 7', /not understood/],
    ['FROM scratch\nADD a b', /not understood/],
    ['FROM scratch\nCOPY --chmod=644 a b', /not understood/],
    ['FROM scratch\nCOPY --from=none a b', /not understood/],
    ['FROM scratch\nCOPY *.none /', /there is none/],
    ['FROM scratch\nRUN true', /not understood/],
    ['FROM scratch\nARG NAME', /no value/],
    ['FROM scratch\nENV A=$NONE', /no such variable/],
    ['FROM scratch\nENTRYPOINT posture-collector', /JSON/],
    ['FROM scratch\nHEALTHCHECK --start-interval=5s CMD ["a"]', /not understood/],
    ['FROM scratch\nONBUILD USER 7', /not understood/],
    ['', /no FROM/],
  ]
  const folder = t.testdir()
  for (const [index, [text, why]] of refused.entries()) {
    const file = join(folder, `${index}.Dockerfile`)
    writeFileSync(file, text)
    t.throws(() => buildImage(file, folder, {}, join(folder, `${index}`)), why, text)
  }
})

t.test('a stage from scratch has the files that it copies', async (t) => {
  const folder = t.testdir({ context: { 'a.txt': 'a', 'b.txt': 'b' } })
  const file = join(folder, 'Dockerfile')
  const text = [
    'FROM scratch AS first',
    'ARG NAME=a',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the container file's own words
    'COPY ${NAME}.txt *b.txt /texts/',
    'FROM scratch',
    'ARG NAME',
    'COPY --from=first /texts /copied',
    'ENV ONE=1',
    'ENV ONE=0 \\',
    '    TWO="2 $ONE"',
    'LABEL of="$NAME"',
    'VOLUME ["/data"]',
    'EXPOSE 1/tcp 2',
    'USER 7:8',
    'HEALTHCHECK --interval=1s CMD ["a", "b c"]',
    'ENTRYPOINT ["x", "y"]',
  ]
  writeFileSync(file, text.join('\n'))
  const image = buildImage(file, join(folder, 'context'), { NAME: 'a' }, join(folder, 'built'))
  t.match(image, {
    ...{ environment: { ONE: '0', TWO: '2 1' }, labels: { of: 'a' }, volumes: ['/data'], ports: ['1/tcp', '2'] },
    ...{ user: '7:8', healthcheck: ['a', 'b c'], entrypoint: ['x', 'y'], workingDirectory: '/' },
  })
  for (const name of ['a', 'b']) t.equal(readFileSync(join(image.root, `copied/${name}.txt`), 'utf8'), name)
})

t.test('an archive with a wrong checksum fails the build', { skip: skipNamespaces }, async (t) => {
  const context = join(t.testdir(), 'release')
  mkdirSync(context)
  const archive = released('posture-service', THIS_MACHINE, '.tar.gz')
  for (const file of [archive, `${archive}.sha256`]) copyFileSync(file, join(context, basename(file)))
  truncateSync(join(context, basename(archive)), 1_000_000)
  const values = { VERSION, TARGETARCH: THIS_MACHINE === 'x86_64' ? 'amd64' : 'arm64' }
  const build = (given: typeof values): unknown =>
    buildImage(
      join(CONTAINER_FILES, 'service.Dockerfile'),
      context,
      given,
      join(t.testdirName, `built-${given.TARGETARCH}`),
    )
  t.throws(() => build(values), /did NOT match/)
  t.throws(() => build({ ...values, TARGETARCH: 'riscv64' }), /no release for the machine/)
})
