import { z } from 'zod'

/** The ID of a platform, also the key by which operators override or disable it. */
export const platformId = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by single hyphens')

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

/** The error of a schema in words of the file. The library's own text is about its types. */
export function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `unknown key ${issue.keys.map((key) => `"${key}"`).join(', ')}`
  return issue.message
    .replace(/^Invalid input: expected (.*), received undefined$/, 'is missing; expected $1')
    .replace(/^Invalid input: expected (.*), received (.*)$/, 'expected $1, found $2')
}
