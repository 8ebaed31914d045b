import { createHash } from 'node:crypto'
import t from 'tap'
import { FixedValues } from '../../../deploy/docs/fixed-values.ts'
import { REPOSITORY } from '../../support/programs.ts'

t.test('pseudonyms have a fixed replacement, which commands of the page can use', async (t) => {
  const shown = (pseudonym: string): string => {
    const values = new FixedValues()
    const text = values.text(`Client  ${pseudonym}`)
    t.equal(
      values.actual(`posture-admin client reveal ${text.split('  ')[1]}`),
      `posture-admin client reveal ${pseudonym}`,
    )
    return text
  }
  const text = shown('p-uFkWyvUVQrVQbcpo2bN5qA9UnnA')
  t.match(text, /^Client {2}p-[0-9a-f]{27}$/)
  t.equal(shown('p-9_yvUVQrVQbcpo2bN5qA9UnuFk-'), text, 'another run shows the same')
})

t.test('an id in an earlier output changes no pseudonym', async (t) => {
  const pseudonym = 'p-uFkWyvUVQrVQbcpo2bN5qA9UnnA'
  const values = new FixedValues()
  values.text('Id  fd2ba8b3-1c2d-4e5f-9a2b-6a8b2ad9bb3e')
  t.equal(values.text(pseudonym), new FixedValues().text(pseudonym))
})

t.test('a short id has the same replacement in each run', async (t) => {
  t.equal(new FixedValues().text('Id       ebd370a2'), new FixedValues().text('Id       c9be682e'))
})

t.test('a pin has the same replacement on one line and on two of a table', async (t) => {
  const pin = createHash('sha256').update('key').digest('hex')
  const values = new FixedValues()
  t.equal(values.text(`SERVICE_FINGERPRINT=sha256-key:${pin}`), 'SERVICE_FINGERPRINT=sha256-key:4ba298…')
  t.equal(
    values.text(`│ tls │ sha256-key:${pin.slice(0, 42)} │\n│     │ ${pin.slice(42).padEnd(53)} │`),
    `│ tls │ sha256-key:4ba298b7f7e3d08920f9b4ea1124bede8ddffdb594 │\n│     │ ${'93acf1f85f2aab3730cae0'.padEnd(53)} │`,
  )
})

t.test('commands of a page can use the first digits of an id on the page', async (t) => {
  const values = new FixedValues()
  const [digits = ''] = values.text('fd2ba8b3-1c2d-4e5f-9a2b-6a8b2ad9bb3e').split('-')
  t.not(digits, 'fd2ba8b3')
  t.equal(
    values.actual(`posture-admin recommendation set ${digits} completed`),
    'posture-admin recommendation set fd2ba8b3 completed',
  )
})

t.test('no page names the directory of the clone, nor how long a program ran', async (t) => {
  const values = new FixedValues()
  t.equal(
    values.text(`reads ${REPOSITORY.replace(/\/?$/, '/')}test/input.pcap`),
    'reads /home/alice/posture/test/input.pcap',
  )
  t.equal(values.text('a → b [93.2ms]'), values.text('a → b [1.25s]'))
})
