import { z } from 'zod'
import type { Passkey } from '../../engine/store/users.ts'

/** The identity of this console toward authenticators (WebAuthn: relying party). */
export interface RelyingParty {
  /** The RP ID: the host name to which passkeys are bound. */
  readonly id: string
  /** The origin that browsers must report. */
  readonly origin: string
}

/** The name that authenticators show. */
export const RELYING_PARTY_NAME = 'Security Posture Service'

/**
 * The relying party of a console at this origin (--console-origin). undefined if passkeys do not
 * work there: WebAuthn requires a host name, and HTTPS or `localhost`. The Host field of a request
 * is not used instead, because a passkey for a temporary name would be lost with that name.
 */
export function relyingPartyOf(origin: string): RelyingParty | undefined {
  if (origin === '') return undefined
  const { protocol, hostname } = new URL(origin)
  const isAddress = hostname.startsWith('[') || /^[\d.]+$/.test(hostname)
  if (isAddress || (protocol !== 'https:' && hostname !== 'localhost')) return undefined
  return { id: hostname, origin }
}

/*
 * What browsers send after a ceremony of WebAuthn, and its verification by @simplewebauthn/server.
 * Nobody trusts these functions with the challenge or the owner: passkeys.ts checks both.
 */

/** COSE algorithms that a passkey can have: ES256, EdDSA, RS256. */
export const ALGORITHMS = [-7, -8, -257]
/**
 * Given to the library as the stored counter, so that it compares nothing. It compares before it
 * verifies the signature, so anyone who knows a credential id could block the passkey. The writer
 * compares instead, in the transaction that stores the new counter (OwnPasskeys.use).
 */
const NO_COUNTER = -1

const base64url = (charactersMax: number) =>
  z
    .string()
    .max(charactersMax)
    .regex(/^[\w-]+$/)
/** WebAuthn §5.8.3: at most 1023 bytes. */
const credentialId = base64url(1364)
const common = { id: credentialId, rawId: credentialId, type: z.literal('public-key') }
const clientDataJSON = base64url(8192)

/** RegistrationResponseJSON (WebAuthn §5.1), as far as it is used. */
const registration = z.object({
  ...common,
  response: z.object({
    clientDataJSON,
    attestationObject: base64url(32_768),
    transports: z
      .array(z.string().regex(/^[a-z-]{1,20}$/))
      .max(8)
      .default([]),
  }),
})
type Registration = z.infer<typeof registration>

/** AuthenticationResponseJSON (WebAuthn §5.1), as far as it is used. */
const assertion = z.object({
  ...common,
  response: z.object({
    clientDataJSON,
    authenticatorData: base64url(4096),
    signature: base64url(4096),
    userHandle: base64url(88).nullish(),
  }),
})
export type Assertion = z.infer<typeof assertion>

const clientData = z.object({ challenge: z.string().max(200) })

/** undefined if the text is not such a response. */
export function readRegistration(text: string): Registration | undefined {
  return registration.safeParse(parsedJson(text)).data
}

/** undefined if the text is not such a response. */
export function readAssertion(text: string): Assertion | undefined {
  return assertion.safeParse(parsedJson(text)).data
}

/** The challenge that a response answers; '' if there is none. Not authenticated yet. */
export function challengeOf({ response }: Registration | Assertion): string {
  const json = Buffer.from(response.clientDataJSON, 'base64url').toString()
  return clientData.safeParse(parsedJson(json)).data?.challenge ?? ''
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Loaded with the first passkey, in half a second: 25 MB, most of them for attestation. */
async function loadLibrary() {
  const [server, helpers] = await Promise.all([
    import('@simplewebauthn/server'),
    import('@simplewebauthn/server/helpers'),
  ])
  return { ...server, ...helpers }
}
type Library = Awaited<ReturnType<typeof loadLibrary>>

/** A new credential, with the user verified by the authenticator. undefined if it is not valid. */
export async function verifyRegistration(
  { id: expectedRPID, origin: expectedOrigin }: RelyingParty,
  { id, rawId, type, response }: Registration,
): Promise<Pick<Passkey, 'credentialId' | 'publicKey' | 'counter' | 'isSyncable' | 'isSynced'> | undefined> {
  const library = await loadLibrary()
  try {
    if (!isWithoutCertificate(library, response.attestationObject)) return undefined
    const { registrationInfo } = await library.verifyRegistrationResponse({
      response: { id, rawId, type, response, clientExtensionResults: {} },
      expectedChallenge: () => true,
      expectedOrigin,
      expectedRPID,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (registrationInfo === undefined) return undefined
    const { credential, credentialDeviceType, credentialBackedUp: isSynced } = registrationInfo
    const { id: credentialId, publicKey, counter } = credential
    return {
      credentialId,
      publicKey: Buffer.from(publicKey).toString('base64url'),
      counter,
      isSyncable: credentialDeviceType === 'multiDevice',
      isSynced,
    }
  } catch {
    // The library throws for whatever is wrong with a response.
    return undefined
  }
}

/**
 * No certificate was asked for, so none is accepted: the library would request the revocation list
 * at an address in the certificate. `packed` without certificate is signed by the passkey itself.
 */
function isWithoutCertificate({ decodeAttestationObject }: Library, attestationObject: string): boolean {
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const format = decoded.get('fmt')
  return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined)
}

/**
 * The counter of a signature, with the user verified by the authenticator. undefined if the
 * signature is not valid.
 */
export async function verifyAssertion(
  { id: expectedRPID, origin: expectedOrigin }: RelyingParty,
  { id, rawId, type, response }: Assertion,
  passkey: Passkey,
): Promise<{ readonly counter: number; readonly isSynced: boolean } | undefined> {
  const library = await loadLibrary()
  const { clientDataJSON, authenticatorData, signature } = response
  try {
    const { verified, authenticationInfo } = await library.verifyAuthenticationResponse({
      response: {
        id,
        rawId,
        type,
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: () => true,
      expectedOrigin,
      expectedRPID,
      requireUserVerification: true,
      credential: {
        id: passkey.credentialId,
        publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')),
        counter: NO_COUNTER,
      },
    })
    if (!verified) return undefined
    return { counter: authenticationInfo.newCounter, isSynced: authenticationInfo.credentialBackedUp }
  } catch {
    return undefined
  }
}
