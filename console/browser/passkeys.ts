/* Passkeys: the part of WebAuthn that only browsers can do. */

type Ceremony = 'create' | 'get'

/**
 * How long the browser offers passkeys in the name field before it asks for a new challenge, which
 * is valid for five minutes.
 */
const OFFER_MS = 4 * 60_000

/** Stops the offer in the name field, because a page can run one ceremony at a time. */
let offer = new AbortController()

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-passkey]')) {
  if (!('PublicKeyCredential' in window)) {
    showPasskeyError(form, 'This browser has no passkeys, or the connection is not secure')
    continue
  }
  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    offer.abort()
    runPasskeyForm(form).catch((error: unknown) => showPasskeyError(form, passkeyErrorText(error)))
  })
  if (form.dataset['optionsFrom'] !== undefined) offerPasskeys(form)
}

/** Asks the authenticator, and posts its response with the form. */
async function runPasskeyForm(form: HTMLFormElement): Promise<void> {
  showPasskeyError(form, '')
  const ceremony: Ceremony = form.dataset['passkey'] === 'create' ? 'create' : 'get'
  post(form, await askAuthenticator(ceremony, await optionsOf(form)))
}

/** Offers passkeys in the name field while the user types (conditional mediation). */
async function offerPasskeys(form: HTMLFormElement): Promise<void> {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return
  offer = new AbortController()
  const { signal } = offer
  const renewal = setTimeout(() => {
    offer.abort()
    offerPasskeys(form)
  }, OFFER_MS)
  try {
    post(form, await askAuthenticator('get', await optionsOf(form), { mediation: 'conditional', signal }))
  } catch {
    // The button still works, and says why if it does not.
    if (!signal.aborted) clearTimeout(renewal)
  }
}

/** The options are in the page, or at an address if the page can be older than its challenge. */
async function optionsOf(form: HTMLFormElement): Promise<unknown> {
  const { optionsFrom, options = '' } = form.dataset
  if (optionsFrom === undefined) return JSON.parse(options)
  const answer = await fetch(optionsFrom)
  if (!answer.ok) throw new Error(`The console answered ${answer.status}`)
  return answer.json()
}

async function askAuthenticator(
  ceremony: Ceremony,
  options: unknown,
  more: { readonly mediation?: CredentialMediationRequirement; readonly signal?: AbortSignal } = {},
): Promise<string> {
  const credential =
    ceremony === 'create'
      ? await navigator.credentials.create({
          publicKey: creationOptionsOf(options as PublicKeyCredentialCreationOptionsJSON),
        })
      : await navigator.credentials.get({
          publicKey: requestOptionsOf(options as PublicKeyCredentialRequestOptionsJSON),
          ...more,
        })
  if (credential === null) throw new Error('The browser returned no passkey')
  return JSON.stringify(responseOf(credential as PublicKeyCredential))
}

function post(form: HTMLFormElement, response: string): void {
  const field = form.querySelector<HTMLInputElement>('input[data-passkey-response]')
  if (field === null) return
  field.value = response
  form.submit()
}

function showPasskeyError(form: HTMLFormElement, text: string): void {
  const place = form.querySelector<HTMLElement>('[data-passkey-error]')
  if (place === null) return
  place.textContent = text
  place.hidden = text === ''
}

function passkeyErrorText(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  if (name === 'NotAllowedError') return 'Canceled, or no passkey was chosen in time. Try again'
  if (name === 'InvalidStateError') return 'This device has a passkey for your account already'
  if (name === 'SecurityError')
    return 'The browser allows no passkeys here: the host name or certificate is not trusted'
  return message
}

/* Chrome before 129 and Safari before 18.4 lack the functions that convert from and to JSON. */

function creationOptionsOf(options: PublicKeyCredentialCreationOptionsJSON): PublicKeyCredentialCreationOptions {
  if ('parseCreationOptionsFromJSON' in PublicKeyCredential) {
    return PublicKeyCredential.parseCreationOptionsFromJSON(options)
  }
  const { challenge, user, excludeCredentials = [] } = options
  return {
    ...(options as unknown as PublicKeyCredentialCreationOptions),
    challenge: bytesOf(challenge),
    user: { ...user, id: bytesOf(user.id) },
    excludeCredentials: excludeCredentials.map(descriptorOf),
  }
}

function requestOptionsOf(options: PublicKeyCredentialRequestOptionsJSON): PublicKeyCredentialRequestOptions {
  if ('parseRequestOptionsFromJSON' in PublicKeyCredential) {
    return PublicKeyCredential.parseRequestOptionsFromJSON(options)
  }
  const { challenge, allowCredentials = [] } = options
  return {
    ...(options as unknown as PublicKeyCredentialRequestOptions),
    challenge: bytesOf(challenge),
    allowCredentials: allowCredentials.map(descriptorOf),
  }
}

function descriptorOf(descriptor: PublicKeyCredentialDescriptorJSON): PublicKeyCredentialDescriptor {
  return { ...(descriptor as unknown as PublicKeyCredentialDescriptor), id: bytesOf(descriptor.id) }
}

/** Also for browsers whose extensions return credentials without toJSON. */
function responseOf(credential: PublicKeyCredential): unknown {
  if (typeof credential.toJSON === 'function') return credential.toJSON()
  const { id, rawId, type } = credential
  const response = credential.response as AuthenticatorAttestationResponse & AuthenticatorAssertionResponse
  const texts: Record<string, unknown> = { transports: response.getTransports?.() }
  for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'] as const) {
    const bytes = response[name]
    if (bytes) texts[name] = textOf(bytes)
  }
  return { id, rawId: textOf(rawId), type, response: texts }
}

function bytesOf(base64url: string): ArrayBuffer {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (character) => character.charCodeAt(0)).buffer
}

function textOf(bytes: ArrayBuffer): string {
  const text = String.fromCharCode(...new Uint8Array(bytes))
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
