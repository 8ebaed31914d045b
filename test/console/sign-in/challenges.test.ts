import t from 'tap'
import { OverloadError } from '../../../console/change-sender.ts'
import { CHALLENGE_MS, Challenges } from '../../../console/sign-in/passkeys.ts'
import { relyingPartyOf } from '../../../console/sign-in/webauthn.ts'

const NOW = 1_780_000_000_000

function use(challenges: Challenges, ...given: Parameters<Challenges['check']>): string {
  const [challenge, , , nowMs] = given
  const state = challenges.check(...given)
  return state !== 'valid' || challenges.use(challenge, 'user', nowMs) ? state : 'wrong'
}

t.test('a challenge is valid once, for its purpose and session', async (t) => {
  const challenges = new Challenges()
  const challenge = challenges.make('confirm', 'one', NOW)
  t.equal(use(challenges, challenge, 'sign-in', 'one', NOW), 'wrong')
  t.equal(use(challenges, challenge, 'confirm', 'two', NOW), 'wrong')
  t.equal(use(challenges, challenge, 'confirm', '', NOW), 'wrong')
  t.equal(use(new Challenges(), challenge, 'confirm', 'one', NOW), 'wrong', 'of another service')
  t.equal(use(challenges, challenge, 'confirm', 'one', NOW + CHALLENGE_MS - 1), 'valid')
  t.equal(use(challenges, challenge, 'confirm', 'one', NOW + CHALLENGE_MS - 1), 'wrong')
  t.equal(use(challenges, challenge, 'confirm', 'one', NOW), 'wrong', 'nor earlier, if the clock was set back')
})

t.test('a challenge expires, and no bit of it can change', async (t) => {
  const challenges = new Challenges()
  const challenge = challenges.make('sign-in', '', NOW)
  t.not(challenge, challenges.make('sign-in', '', NOW), 'it is random')
  t.equal(use(challenges, challenge, 'sign-in', '', NOW + CHALLENGE_MS), 'expired')
  t.equal(use(challenges, challenge, 'sign-in', '', NOW - 1), 'expired')
  const bytes = Buffer.from(challenge, 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    t.equal(use(challenges, changed.toString('base64url'), 'sign-in', '', NOW), 'wrong')
  }
  for (const text of ['', 'A', `${challenge}A`, `${challenge}=`, `${challenge} `, bytes.toString('base64')]) {
    if (text !== challenge) t.equal(use(challenges, text, 'sign-in', '', NOW), 'wrong', text)
  }
  t.equal(use(challenges, challenge, 'sign-in', '', NOW), 'valid')
})

t.test('a check does not use a challenge, and of two answers only one uses it', async (t) => {
  const challenges = new Challenges()
  const challenge = challenges.make('sign-in', '', NOW)
  for (let at = 0; at < 20_000; at++) challenges.check(challenge, 'sign-in', '', NOW)
  t.equal(challenges.check(challenge, 'sign-in', '', NOW), 'valid')
  t.same([challenges.use(challenge, 'user', NOW), challenges.use(challenge, 'user', NOW)], [true, false])
})

t.test('used challenges are bounded, of all and of one user, and forgotten when they have expired', async (t) => {
  const challenges = new Challenges()
  const useAt = (userId: string, nowMs: number) => challenges.use(challenges.make('sign-in', '', nowMs), userId, nowMs)
  for (let at = 0; at < 200; at++) t.ok(useAt('mallory', NOW))
  t.throws(() => useAt('mallory', NOW), OverloadError)
  t.throws(() => useAt('mallory', NOW + CHALLENGE_MS - 1), OverloadError)
  for (let at = 200; at < 10_000; at++) t.ok(useAt(`user ${at}`, NOW), 'others are not concerned')
  t.throws(() => useAt('another', NOW), OverloadError)
  t.ok(useAt('mallory', NOW + CHALLENGE_MS))
})

t.test('the relying party is the host name of the origin', async (t) => {
  const rows: readonly [origin: string, id: string | undefined][] = [
    ['https://posture.example', 'posture.example'],
    ['https://posture.example:8444', 'posture.example'],
    ['https://posture', 'posture'],
    ['https://xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['https://localhost:8444', 'localhost'],
    ['http://localhost:8444', 'localhost'],
    ['', undefined],
    ['http://posture.example', undefined],
    ['https://192.0.2.1', undefined],
    ['https://127.0.0.1:8444', undefined],
    ['https://[::1]:8444', undefined],
  ]
  for (const [origin, id] of rows) {
    t.same(relyingPartyOf(origin), id === undefined ? undefined : { id, origin }, origin)
  }
})
