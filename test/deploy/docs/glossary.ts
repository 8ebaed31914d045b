/** A word or phrase that the documentation, the help and the log do not use. */
export interface Avoided {
  /** Case-insensitive. */
  readonly pattern: RegExp
  /** The standard term. */
  readonly use: string
}

/**
 * Words that are not the field's standard term, and what to write instead. A pattern matches only
 * the wrong use: `behind a proxy`, `lookup`, `one way` and `certificate authority` are correct
 * English.
 */
export const AVOIDED: readonly Avoided[] = [
  {
    pattern:
      /\b(?:stands?|stood|standing|lies|lay|lying) (?:in|on|at|ready|beside|above|below|behind|before|over|there|here|whole|open)\b/,
    use: 'is in, is stored in',
  },
  { pattern: /\bthat stands?\b/, use: 'that is' },
  {
    pattern:
      /(?<!\b(?:fall|falls|fell|falling|left|leave) )\bbehind\b(?! (?:(?:an?|the|your|another|one|its|their) )?(?:[\w-]+ )?(?:prox(?:y|ies)|(?:load )?balancers?|NAT|firewalls?|gateways?)\b)/,
    use: 'after',
  },
  { pattern: /\banew\b/, use: 'again, re-' },
  { pattern: /\bbesides\b/, use: 'also, in addition' },
  { pattern: /\bfor ever\b|\bfor good\b/, use: 'permanently' },
  { pattern: /\bparted\b/, use: 'comma-separated' },
  { pattern: /\b(?:tells?|telling|told|untold)\b/, use: 'report, notify, post' },
  { pattern: /\blook(?:s|ed|ing)?\b(?! (?:like|up|for|the same|as|worse|better)\b)/, use: 'poll, check' },
  { pattern: /\blook-ups?\b/, use: 'lookup' },
  {
    pattern:
      /(?<!\b(?:one|same|either|best|only|another|this|that|two|any|which|three) )(?<!\b(?:one|two)-)\bways?\b(?! (?:to|of) (?!the\b))/,
    use: 'transport, path',
  },
  { pattern: /\bbooks?\b/, use: 'counters, accounting' },
  { pattern: /\bstrangers?\b/, use: 'unauthenticated sender' },
  { pattern: /\bdoors?\b/, use: 'authenticator, entry point' },
  { pattern: /\b(?:lend|lends|lent|lending)\b/, use: 'borrow; in flight' },
  { pattern: /\blet(?:s|ting)? go\b/, use: 'is disconnected, is dropped' },
  { pattern: /\b(?:un)?usual\b/, use: 'common path; fast path, slow path' },
  { pattern: /\broomless\b|\bwithout (?:a )?room\b|\bno room\b/, use: 'overflow, tableFull, no space' },
  { pattern: /\bcrowded\b/, use: 'backpressured' },
  { pattern: /\bturn(?:ed|s|ing)?[ _]away\b/, use: 'rejected (overload)' },
  { pattern: /(?<!\bone )\b(?:pass(?:ed|es|ing)?|read)[ _]over\b/, use: 'skipped, ignored' },
  { pattern: /\bhand(?:ed|s|ing)?[ _]over\b/, use: 'seen by both captures; passed to' },
  { pattern: /\bpacked (?:bod|form|bytes|answer)|\bpacked by\b|\b(?:is|are) packed\b/, use: 'compressed' },
  { pattern: /\bcuts?\b|\bcutting\b/, use: 'truncated, aborted' },
  { pattern: /\bhalves\b/, use: 'meridiem (AM/PM)' },
  { pattern: /(?<!\bcertificate )\bauthorit(?:y|ies)\b/, use: 'CA certificate' },
  { pattern: /\btroubles?\b/, use: 'error, problem' },
  { pattern: /\bof ours\b/, use: 'internal error' },
  { pattern: /\bso (?:many|much|few)\b/, use: 'total' },
  { pattern: /\bha(?:s|ve) not (?:the|an?|any)\b/, use: 'lacks' },
  { pattern: /\bmend(?:s|ed|ing)?\b/, use: 'fix' },
  { pattern: /\bmisspelt\b/, use: 'typos' },
  { pattern: /\bshall\b/, use: 'will, must; upcoming' },
  { pattern: /\bthis once\b/, use: 'save it now; it will not be shown again' },
  { pattern: /\bdata (?:are|were|stay|have|do)\b/, use: 'data is' },
  { pattern: /\b(?:that|which|what) (?:is|are) there\b/, use: 'existing' },
  { pattern: /(?<!case )(?<!\bcase-)\b(?:un)?fold(?:s|ed|ing)?\b/, use: 'add, aggregate' },
  {
    pattern: /\bwhoever\b|\bwhat supervises\b/,
    use: 'anyone who, the supervisor (systemd)',
  },
  { pattern: /\bgive(?:s|n)? up root\b|\broot is given up\b/, use: 'drop root' },
  { pattern: /\b(?:any|every)body\b/, use: 'anyone, any sender' },
  { pattern: /\bneither is there\b|\bis there without\b/, use: 'in one transaction' },
  { pattern: /\bat once,? what\b|\bsaid at once\b/, use: 'reported together' },
  { pattern: /\berrs\b/, use: 'is too low, is too high' },
  { pattern: /\bhelps neither\b|\bno remedy\b/, use: 'fixes neither problem' },
  { pattern: /\blife of\b|\blives of\b/, use: 'lifecycle; how ... is processed' },
  { pattern: /\bwherefore\b|\bthereby\b|\bwherein\b|\bthereof\b|\blikewise\b/, use: 'a plain sentence' },
  // American spelling.
  {
    pattern:
      /\b\w+(?:is|ys)(?:e[ds]?|ing|ation|ations)\b(?<=\b(?:un)?(?:author|recogn|normal|neutral|initial|serial|organ|minim|maxim|optim|summar|anal|synchron|custom|util|priorit|categor|visual|final|real)(?:is|ys)(?:e[ds]?|ing|ation|ations))/,
    use: 'American spelling: -ize',
  },
  { pattern: /\b(?:colour|behaviour|honour|favour|labour|neighbour|harbour)\w*\b/, use: 'American spelling: -or' },
  {
    pattern:
      /\b(?:licences?|defence|offence|centres?|metres?|grey|whilst|learnt|spelt|practise[ds]?|catalogue[ds]?|programme[ds]?|cancelled|labelled|modelled|travelled|judgement)\b/,
    use: 'American spelling',
  },
]

/** Text in which an avoided word is correct. */
export const ALLOWED: readonly RegExp[] = [
  // File names in the repository.
  /[\w./-]+\.(?:ts|js|md|yaml)\b/g,
  // A component of a URI (RFC 3986 §3.2).
  /RFC [^.]*§3\.2[^.]*: the authority\b/g,
  // Quoted names in comments.
  /`[^`\n]*`/g,
]
