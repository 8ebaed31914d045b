import t from 'tap'
import { SignInAttempts, WINDOW_MS } from '../../../console/sign-in/attempts.ts'

const NAME = 'ada@acme.example'

function fail(attempts: SignInAttempts, times: number, about: object, nowMs: number): number {
  let allowed = 0
  for (let time = 0; time < times; time++) {
    const attempt = { name: NAME, of: 'account' as const, address: '192.0.2.1', trustedBrowser: undefined, ...about }
    if (attempts.begin(attempt, nowMs).allowed) allowed++
  }
  return allowed
}

t.test('five failures of an account in any 15 minutes, from any address', async (t) => {
  const attempts = new SignInAttempts()
  t.equal(fail(attempts, 3, { address: '192.0.2.1' }, 0), 3)
  t.equal(fail(attempts, 5, { address: '198.51.100.1', name: NAME.toUpperCase() }, 60_000), 2)
  const verdict = attempts.begin(
    { name: NAME, of: 'account' as const, address: '203.0.113.9', trustedBrowser: undefined },
    60_000,
  )
  t.same(verdict, { allowed: false, retryAfterSeconds: (WINDOW_MS - 60_000) / 1000 })
  t.equal(fail(attempts, 5, {}, WINDOW_MS), 3, 'three have left the window')
})

t.test('twenty failures of a network, over all accounts', async (t) => {
  const attempts = new SignInAttempts()
  let allowed = 0
  for (let at = 0; at < 30; at++) {
    allowed += fail(attempts, 1, { name: `user${at}`, address: `2001:db8:1:2::${at.toString(16)}` }, 0)
  }
  t.equal(allowed, 20)
  t.equal(fail(attempts, 1, { name: 'other', address: '2001:db8:1:3::1' }, 0), 1, 'another /64')
})

t.test('an attacker who guesses cannot lock out a browser that signed in before', async (t) => {
  const attempts = new SignInAttempts()
  fail(attempts, 30, {}, 0)
  t.equal(fail(attempts, 1, {}, 0), 0)
  t.equal(fail(attempts, 10, { trustedBrowser: 'one' }, 0), 5)
  t.equal(fail(attempts, 10, { trustedBrowser: 'two' }, 0), 5, 'each has its own')
})

t.test('a success does not count; parallel attempts do', async (t) => {
  const attempts = new SignInAttempts()
  for (let time = 0; time < 20; time++) {
    const verdict = attempts.begin(
      { name: NAME, of: 'account' as const, address: '192.0.2.1', trustedBrowser: undefined },
      0,
    )
    t.ok(verdict.allowed)
    if (verdict.allowed) verdict.succeeded()
  }
  t.equal(fail(attempts, 20, {}, 0), 5)
})

t.test('100,000 names that no account has displace neither the failures of an account nor of a network', async (t) => {
  const attempts = new SignInAttempts()
  fail(attempts, 5, {}, 0)
  fail(attempts, 20, { name: 'a', of: 'unknown name' as const, address: '198.51.100.1' }, 0)
  for (let at = 0; at < 100_001; at++) {
    fail(
      attempts,
      1,
      { name: `user${at}`, of: 'unknown name' as const, address: '203.0.113.1', trustedBrowser: undefined },
      0,
    )
  }
  t.equal(fail(attempts, 1, {}, 0), 0)
  const behindProxy = new SignInAttempts(() => {}, false)
  fail(behindProxy, 5, {}, 0)
  for (let at = 0; at < 100_001; at++) fail(behindProxy, 1, { name: `user${at}`, of: 'unknown name' as const }, 0)
  t.equal(fail(behindProxy, 1, {}, 0), 0)
})

t.test('made-up passkeys do not reveal which names are unknown', async (t) => {
  const attempts = new SignInAttempts(() => {}, false)
  fail(attempts, 5, { of: 'unknown name' }, 0)
  for (let at = 0; at < 100_001; at++) fail(attempts, 1, { name: `passkey\t${at}`, of: 'unknown passkey' }, 0)
  t.equal(fail(attempts, 1, { of: 'unknown name' }, 0), 0)
})
