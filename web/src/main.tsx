// The entry of the dashboard: theme, login, then the application.
import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./parts/theme";
import "./style.css";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
