import { generate } from 'selfsigned'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'

/** A certificate that ends this many days after a time, as PEM, with its key. */
export async function expiringCertificate(days: number, fromMs = Date.now()) {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'a.example' }], {
    ...({ keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const),
    notBeforeDate: new Date(fromMs - 800 * DAY_MS),
    notAfterDate: new Date(fromMs + days * DAY_MS),
  })
  return { cert, key }
}
