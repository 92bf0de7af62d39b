// What somebody sees who is not logged in.
import { useState } from "preact/hooks";
import { logIn, loginError, self } from "../../live/session";
import { CopyText, Field, Loading } from "../../parts/ui";
import { text } from "../../text";

export function LoginPage() {
  const [code, setCode] = useState("");
  if (self.value === undefined) return <main class="login"><Loading /><p class="dim">{text.login.waiting}</p></main>;
  return (
    <main class="login">
      <h1>{text.login.title}</h1>
      {loginError.value && <p class="problem" role="alert">{text.login.failed(loginError.value)}</p>}
      <p>{text.login.how}</p>
      <CopyText value={text.login.command} />
      <form onSubmit={(e) => { e.preventDefault(); void logIn(code.trim().replace(/^.*#login=/, "")); }}>
        <Field label={text.login.or}>
          <input value={code} autoComplete="off" aria-label={text.login.code} onInput={(e) => setCode(e.currentTarget.value)} />
        </Field>
        <button class="primary" disabled={!code.trim()}>{text.login.go}</button>
      </form>
    </main>
  );
}
