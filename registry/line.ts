import { z } from 'zod'

/** One line of text. */
export const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line without control characters')

/** A day such as 2026-11-23. */
export const isoDay = z.iso.date()

/** ISO 3166-1 alpha-2. */
export const countryCode = z.string().regex(/^[A-Z]{2}$/, 'must be a country code such as DE')

export const webAddress = z.url({ protocol: /^https?$/ }).max(2000)
