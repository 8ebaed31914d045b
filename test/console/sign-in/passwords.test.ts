import t from 'tap'
import { OverloadError } from '../../../console/change-sender.ts'
import { PasswordHasher, passwordFault } from '../../../console/sign-in/passwords.ts'

const REFUSED = [
  ['elevenchars', /at least 12/],
  ['👍👍👍👍👍', /at least 12/],
  ['x'.repeat(1025), /1024 bytes/],
  ['aaaaaaaaaaaa', /easy to guess/],
  ['abcabcabcabc', /easy to guess/],
  ['123412341234', /easy to guess/],
  ['password1234', /common/],
  ['Password2026!', /common/],
  ['PASSWORD!!!!!!', /common/],
  ['adalovelace2026', /name/],
] as const

t.test('passwords that are refused', async (t) => {
  for (const [password, why] of REFUSED) t.match(passwordFault(password, ['AdaLovelace']), why, password)
  for (const good of [
    'correct horse battery staple',
    '9381-4427-1093-5512',
    'bläulicher Mond über Kiel',
    'mQ7!xv#Lp2-z',
  ]) {
    t.equal(passwordFault(good, ['ada']), undefined, good)
  }
})

t.test('argon2id with the parameters of the documentation', async (t) => {
  const hasher = new PasswordHasher()
  const stored = await hasher.hash('correct horse battery staple')
  t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  t.equal(await hasher.verify(stored, 'correct horse battery staple'), true)
  t.equal(await hasher.verify(stored, 'Correct horse battery staple'), false)
  t.equal(await hasher.verify(undefined, 'correct horse battery staple'), false)
  t.equal(await hasher.verify('', ''), false)
  t.equal(await hasher.verify(stored, 'x'.repeat(2000)), false)
})

t.test('an unknown name takes as long as a wrong password', async (t) => {
  const hasher = new PasswordHasher()
  const stored = await hasher.hash('correct horse battery staple')
  await hasher.verify(undefined, 'first')
  const cpuOf = async (against: string | undefined): Promise<number> => {
    const began = process.cpuUsage()
    await hasher.verify(against, 'wrong')
    const { user, system } = process.cpuUsage(began)
    return user + system
  }
  // The least of several measurements in turn: other work on the machine only adds to CPU time.
  const least = { unknown: Number.POSITIVE_INFINITY, known: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 9; round++) {
    least.unknown = Math.min(least.unknown, await cpuOf(undefined))
    least.known = Math.min(least.known, await cpuOf(stored))
  }
  const ratio = least.unknown / least.known
  t.ok(ratio > 0.5 && ratio < 2, `${ratio}`)
})

t.test('the queue is bounded, and a failure does not block it', async (t) => {
  const hasher = new PasswordHasher()
  t.rejects(hasher.verify('no hash', 'x'))
  const results = await Promise.allSettled(Array.from({ length: 40 }, () => hasher.hash('x')))
  const refused = results.filter((each) => each.status === 'rejected')
  t.equal(refused.length, 9)
  t.ok(refused.every(({ reason }) => reason instanceof OverloadError))
  t.match(await hasher.hash('x'), /^\$argon2id/)
})
